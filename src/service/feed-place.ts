/**
 * Places in the feed of a session, as readers name them in `Last-Event-ID`: `<session>:<position>:<end>`, with the run
 * behind it once a reader of that run has learned its end. The session is a hash, so an id says nothing about it.
 */
import { createHash } from 'node:crypto';

export type FeedPlace = {
  /** Everything up to this position has been read, and won't change. */
  readonly position: number;
  /** The number of the last end of a run that was told. */
  readonly end: number;
};

/** Names a session. `restoreMark`: positions are only valid between two restores. */
export type FeedSession = { readonly laneKey: string; readonly restoreMark: string };

export function formatPlace(session: FeedSession, { position, end }: FeedPlace, doneRun?: string): string {
  const done = doneRun === undefined ? '' : `:${hashOf(doneRun)}`;
  return `${hashOf(session.laneKey)}${markOf(session)}:${Math.max(0, Math.floor(position))}:${end}${done}`;
}

const form = /^([\w-]{12})((?:\.[\w-]{12})?):(\d{1,15}):(\d{1,15})(?::([\w-]{12}))?$/;

export type ReadPlace =
  | { readonly kind: 'place'; readonly place: FeedPlace; knowsEndOf(run: string): boolean }
  /** The database was restored since, so the place means nothing. */
  | { readonly kind: 'outdated' }
  /** It isn't an id, or is one of another session. */
  | { readonly kind: 'foreign' };

/** Reads an id that a reader of the session has given. */
export function parsePlace(session: FeedSession, text: string): ReadPlace {
  const [, hash, mark, position, end, done] = form.exec(text) ?? [];
  if (hash !== hashOf(session.laneKey)) return { kind: 'foreign' };
  if (mark !== markOf(session)) return { kind: 'outdated' };
  return {
    kind: 'place',
    place: { position: Number(position), end: Number(end) },
    knowsEndOf: (run) => done === hashOf(run),
  };
}

function markOf({ restoreMark }: FeedSession): string {
  return restoreMark === '' ? '' : `.${hashOf(restoreMark)}`;
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 12);
}
