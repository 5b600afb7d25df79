import type { Selectable } from 'kysely';
import { parseJson } from '#channel-kit/parse-json.ts';
import type { ForkPoint } from '#contracts/child.ts';
import { type InboxId, sessionId, transcriptId } from '#contracts/ids.ts';
import type { MessagePart, TranscriptMessage, Unsendable } from '#contracts/message.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import type { TranscriptTable } from '../base/tables.ts';

/** The session's history as the next model call sees it: from its summary on, finished messages only. */
export const readHistory: StoreQuery<{ readonly sessionId: string }, readonly TranscriptMessage[]> = {
  query: 'readHistory',
  run: async (tx, { sessionId }) => {
    const rows = await history.all(tx, { sessionId });
    return rows.map(messageOf);
  },
};

const columns = ['id', 'sessionId', 'role', 'parts', 'model', 'unsendable', 'createdAt', 'position'] as const;

const history = prepared((db, of: QueryParams<{ sessionId: string }>) => {
  const summary = db
    .selectFrom('sessions')
    .innerJoin('transcript', 'transcript.id', 'sessions.summaryMessageId')
    .select('transcript.position')
    .where('sessions.id', '=', of.sessionId);
  return db
    .selectFrom('transcript')
    .select(columns)
    .where('sessionId', '=', of.sessionId)
    .where('isFinished', '=', 1)
    .where((eb) => eb('position', '>=', eb.fn.coalesce(summary, eb.lit(0))))
    .orderBy('position');
});

/**
 * Reads a session's history up to a fork point. Forks copy nothing: if the session was forked itself, its
 * beginning is read from its own origin.
 */
export const readForkedHistory: StoreQuery<ForkPoint, readonly TranscriptMessage[]> = {
  query: 'readForkedHistory',
  run: (tx, fork) => historyAt(tx, fork),
};

async function historyAt(tx: Tx, fork: ForkPoint): Promise<readonly TranscriptMessage[]> {
  const { sessionId, summaryMessageId, position } = fork;
  let query = tx.db
    .selectFrom('transcript')
    .select(columns)
    .where('sessionId', '=', sessionId)
    .where('isFinished', '=', 1)
    .where('position', '<', position)
    .orderBy('position');
  if (summaryMessageId !== null) {
    const summary = tx.db.selectFrom('transcript').select('position').where('id', '=', summaryMessageId);
    query = query.where((eb) => eb('position', '>=', eb.fn.coalesce(summary, eb.lit(0))));
  }
  const own = (await query.execute()).map(messageOf);
  // A summary holds what came before it, what it was forked from included.
  if (summaryMessageId !== null) return own;
  const session = await tx.db
    .selectFrom('sessions')
    .select('forkedFrom')
    .where('id', '=', sessionId)
    .executeTakeFirst();
  const earlier = session?.forkedFrom ?? null;
  // The fork point was written by us at the spawn.
  return earlier === null ? own : [...(await historyAt(tx, parseJson(earlier) as ForkPoint)), ...own];
}

export type PageRequest = { readonly sessionId: string; readonly before?: number; readonly limit: number };

/** A page of a transcript, newest last, whatever its state; for lists and tools. */
export const readTranscriptPage: StoreQuery<
  PageRequest,
  readonly (TranscriptMessage & { readonly position: number })[]
> = {
  query: 'readTranscriptPage',
  run: async (tx, { sessionId, before, limit }) => {
    let query = tx.db
      .selectFrom('transcript')
      .select(columns)
      .where('sessionId', '=', sessionId)
      .orderBy('position', 'desc')
      .limit(limit);
    if (before !== undefined) query = query.where('position', '<', before);
    return (await query.execute()).reverse().map((row) => ({ ...messageOf(row), position: row.position }));
  },
};

function messageOf(row: Pick<Selectable<TranscriptTable>, (typeof columns)[number]>): TranscriptMessage {
  return {
    // Ids and roles come from our own rows.
    id: transcriptId(row.id),
    sessionId: sessionId(row.sessionId),
    role: row.role as TranscriptMessage['role'],
    parts: partsOf(row.parts),
    ...(row.model !== null && { model: row.model }),
    ...(row.unsendable !== null && { unsendable: row.unsendable as Unsendable }),
    createdAt: row.createdAt,
    inboundIds: [] as readonly InboxId[],
  };
}

/** A row that something has damaged must not take the rest of the conversation along. */
function partsOf(stored: string): readonly MessagePart[] {
  try {
    return json.parts(stored);
  } catch {
    return [{ type: 'text', data: { text: '[This message cannot be read any more.]' } }];
  }
}
