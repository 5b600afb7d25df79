/**
 * The feed of a session for programs, as server-sent events and over WebSocket. Who may not read a session learns no
 * more about it than about one that doesn't exist.
 */
import { once } from 'node:events';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { WebSocket } from 'ws';
import { z } from 'zod';
import { feedFrameSchema, feedKinds } from '#contracts/feed-frame.ts';
import type { FeedBatch } from '../service/feed-batch.ts';
import { parsePlace } from '../service/feed-place.ts';
import type { FeedRequest, SessionFeeds } from '../service/session-feeds.ts';
import type { Store } from '../store/base/command.ts';
import { findLane, findRunPlace } from '../store/reads/read-ended-runs.ts';
import { findSession } from '../store/reads/read-sessions.ts';
import type { ApiCall } from './api-call.ts';
import { closeSocket, watchHeartbeat } from './channel-routes.ts';
import { openEventStream } from './event-stream.ts';
import { type Identity, signInIdOf } from './identity.ts';
import { isOwn, mayRead, mayReadAll } from './read-access.ts';
import { feedPath, type Refusal, refuse, storeAway } from './request-auth.ts';

export type FeedRouteDeps = {
  readonly store: Pick<Store, 'read'>;
  readonly feeds: SessionFeeds;
  /** Returns the key of the owner's main conversation. */
  mainLane(): string;
  /** Identifies the caller of an open request again. */
  identify(request: FastifyRequest): Promise<Identity>;
};

/** The open feeds of this server. */
export type OpenFeeds = {
  /** Ends the feeds of a sign-in or token. */
  end(id: string): void;
  /** Ends all of them. */
  close(): void;
  /** Returns the sign-ins that have open feeds. */
  sessionsInUse(): readonly string[];
};

const name = z.string().min(1).max(2_048).exactOptional();
const feedQuery = z.strictObject({
  session: name.describe("A session's key or id; absent: your own conversation with the default agent"),
  run: name.describe('Only this run; the feed ends with it'),
  kind: z
    .string()
    .max(500)
    .exactOptional()
    .describe(`Only these kinds of frames and events, separated by commas: ${feedKinds.join(', ')}`),
  after: z.string().max(200).exactOptional().describe('As `Last-Event-ID`, for clients that can’t send it'),
});

const call = {
  method: 'GET',
  path: feedPath,
  summary:
    'Follows a session as it happens: server-sent events with one frame each, or the same frames over WebSocket. Begins with a snapshot, also after `Last-Event-ID`; 204: the run has ended, and the caller knows',
  access: 'owner',
  scope: ['read', 'chat'],
  input: feedQuery,
  answer: feedFrameSchema,
  answerType: 'text/event-stream',
  refusals: ['invalid_input', 'not_found', 'ambiguous'],
} as const satisfies ApiCall;

/** How long a feed stays open, ms, give or take a tenth; its reader comes back without a gap. */
const lifetimeMs = 3_600_000;
/** How often it is checked whether the caller may still read, ms. */
const checkMs = 15_000;
/** How long a reader of a WebSocket may take nothing, ms. */
const stallMs = 120_000;

/** Adds the route. */
export function mountFeed(app: FastifyInstance, deps: FeedRouteDeps): OpenFeeds {
  const open = new Map<AbortController, string | undefined>();
  const asked = new WeakMap<FastifyRequest, FeedRequest>();
  const begin = (request: FastifyRequest) => {
    const over = new AbortController();
    open.set(over, idOf(request.identity));
    const checks = setInterval(() => void check(deps, request, over), checkMs).unref();
    const lifetime = setTimeout(() => over.abort('time'), lifetimeMs * (0.9 + Math.random() / 5)).unref();
    over.signal.addEventListener('abort', () => {
      clearInterval(checks);
      clearTimeout(lifetime);
      open.delete(over);
    });
    // The hook before has put it there.
    const feed = deps.feeds.open(asked.get(request) as FeedRequest, over.signal);
    if (feed === undefined) over.abort();
    return { over, feed };
  };
  app.route({
    ...{ method: 'GET', url: call.path, exposeHeadRoute: false },
    config: { access: 'owner', scope: ['read', 'chat'], isSocket: true, call },
    preHandler: async (request, reply) => {
      const found = await findFeed(deps, request);
      if (found === 'ended') return reply.code(204).send();
      if ('status' in found) return refuse(reply, found);
      asked.set(request, found);
    },
    handler: async (request, reply) => {
      const { over, feed } = begin(request);
      if (feed === undefined) return refuse(reply, tooMany);
      await writeEvents(feed, reply, over);
      return reply;
    },
    wsHandler: (socket, request) => {
      const { over, feed } = begin(request);
      if (feed === undefined) return closeSocket(socket, 1013, 'too many readers');
      void writeMessages(feed, socket, over);
    },
  });
  return {
    end: (id) => {
      for (const [over, of] of open) if (of === id) over.abort('access');
    },
    close: () => {
      for (const over of open.keys()) over.abort('going away');
    },
    sessionsInUse: () => [...open.values()].filter((id) => id !== undefined),
  };
}

/** Serves the route while there is no store: its readers come back. */
export function mountAbsentFeed(app: FastifyInstance): void {
  const config = { access: 'owner', scope: ['read', 'chat'], call: 'none' } as const;
  app.get(feedPath, { config, exposeHeadRoute: false }, (_, reply) => refuse(reply, storeAway));
}

const tooMany: Refusal = { status: 503, code: 'too_many_readers', retryAfterMs: 5_000 };

const notFound: Refusal = {
  status: 404,
  code: 'not_found',
  text: 'There is no such conversation or run, or this token may not read it.',
};

function invalid(text: string): Refusal {
  return { status: 400, code: 'invalid_input', text };
}

/** Finds what the caller wants to follow. `ended`: they follow a run of whose end they have been told. */
async function findFeed(
  deps: FeedRouteDeps,
  { query, headers, identity }: FastifyRequest,
): Promise<FeedRequest | Refusal | 'ended'> {
  const parsed = feedQuery.safeParse(query);
  if (!parsed.success) return { status: 400, code: 'invalid_request' };
  const { run, kind, after } = parsed.data;
  const kinds = kind?.split(',').map((one) => one.trim());
  const unknown = kinds?.find((one) => !feedKinds.includes(one));
  if (unknown !== undefined) return invalid(`There is no kind “${unknown}”. Kinds: ${feedKinds.join(', ')}.`);
  const laneKey = await findKey(deps, parsed.data, identity);
  if (typeof laneKey !== 'string') return laneKey;
  const filter = { laneKey, run, kinds: kinds && new Set(kinds) };
  const last = headers['last-event-id'];
  const id = (typeof last === 'string' && last) || after;
  if (id === undefined) return filter;
  const read = parsePlace({ laneKey, restoreMark: deps.feeds.restoreMark }, id);
  if (read.kind === 'foreign')
    return invalid('This event id is of another conversation. Connect without it.');
  if (read.kind === 'outdated') return filter;
  return run !== undefined && read.knowsEndOf(run) ? 'ended' : { ...filter, place: read.place };
}

/** Returns the key of the session, if the caller may read it. */
async function findKey(
  { store, mainLane }: FeedRouteDeps,
  { session, run }: z.output<typeof feedQuery>,
  identity: Identity | undefined,
): Promise<string | Refusal> {
  const key = await keyOfSession();
  if (key === undefined) return notFound;
  if (typeof key !== 'string') return mayReadAll(identity) ? key : notFound;
  if (!mayRead(identity, key)) return notFound;
  if (run === undefined) return key;
  const place = await store.read(findRunPlace, { runId: run });
  if (place === undefined || !mayRead(identity, place.laneKey)) return notFound;
  return session === undefined || place.laneKey === key ? place.laneKey : notFound;

  async function keyOfSession(): Promise<string | Refusal | undefined> {
    if (session === undefined) return run === undefined ? mainLane() : runLane(run);
    // A program may follow its own conversation before it says anything there.
    if (isOwn(identity, session) || (await store.read(findLane, { laneKey: session }))) return session;
    const found = await store.read(findSession, { idOrKey: session });
    if (found.kind === 'several') return { status: 409, code: 'ambiguous' };
    return found.kind === 'found' ? found.session.key : undefined;
  }

  async function runLane(runId: string): Promise<string | undefined> {
    return (await store.read(findRunPlace, { runId }))?.laneKey;
  }
}

function idOf(identity: Identity | undefined): string | undefined {
  return identity?.kind === 'token' ? identity.token.id : signInIdOf(identity);
}

/** Ends the feed of a caller who may not read any more, such as one whose token was revoked elsewhere. */
async function check(deps: FeedRouteDeps, request: FastifyRequest, over: AbortController): Promise<void> {
  const identity = await deps.identify(request).catch(() => ({ kind: 'unknown' }) as const);
  // As long as the store is away, nobody can say.
  if (identity.kind !== 'unknown' && idOf(identity) !== idOf(request.identity)) over.abort('access');
}

/** Batches as they are sent, which readers share. */
const encoded = new WeakMap<FeedBatch, string>();

function eventsOf(batch: FeedBatch): string {
  const known = encoded.get(batch);
  if (known !== undefined) return known;
  const events = batch.map(({ frame, json }) => {
    const id = 'id' in frame && frame.id !== undefined ? `id: ${frame.id}\n` : '';
    return `${id}data: ${json}\n\n`;
  });
  encoded.set(batch, events.join(''));
  return events.join('');
}

async function writeEvents(
  feed: AsyncIterable<FeedBatch>,
  reply: FastifyReply,
  over: AbortController,
): Promise<void> {
  reply.raw.once('close', () => over.abort());
  // Some proxies compress otherwise, and hold back what is too little for that.
  reply.header('cache-control', 'no-store, no-transform');
  const stream = openEventStream(reply, over.signal);
  // After a restart readers shouldn't come back all at once.
  await stream.write(`retry: ${500 + Math.floor(Math.random() * 2_000)}\n\n`);
  for await (const batch of feed) if (!(await stream.write(eventsOf(batch)))) break;
  stream.end();
  over.abort();
}

async function writeMessages(
  feed: AsyncIterable<FeedBatch>,
  socket: WebSocket,
  over: AbortController,
): Promise<void> {
  const { signal } = over;
  watchHeartbeat(socket);
  socket.once('close', () => over.abort());
  for await (const batch of feed)
    if (!(await sendAll(socket, batch, signal))) {
      socket.terminate();
      break;
    }
  const reason = signal.aborted ? String(signal.reason) : 'ended';
  closeSocket(socket, codes[reason] ?? 1000, reason in codes ? reason : 'ended');
  over.abort();
}

const codes: Readonly<Record<string, number>> = { 'going away': 1001, access: 1008, time: 1012 };

/** Resolves once the reader has room for more; false when they are gone. */
async function sendAll(socket: WebSocket, batch: FeedBatch, signal: AbortSignal): Promise<boolean> {
  const sent = Promise.withResolvers<boolean>();
  for (const [index, { json }] of batch.entries())
    socket.send(json, (error) => (index === batch.length - 1 || error) && sent.resolve(!error));
  const stalled = AbortSignal.any([signal, AbortSignal.timeout(stallMs)]);
  const cut = new AbortController();
  const gone = once(stalled, 'abort', { signal: cut.signal }).then(
    () => signal.aborted,
    () => true,
  );
  const isSent = await Promise.race([sent.promise, gone]);
  cut.abort();
  return isSent;
}
