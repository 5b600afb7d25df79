/**
 * How a program talks to an agent: it puts a message into a session and follows its progress. The answer is only
 * recorded and returned to the caller, who would otherwise read it twice: in the conversation and as the result of the
 * call. Whether a session is busy is read from the store, so it accounts for the work of every process.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import { changesLane, type FeedEvent } from '#contracts/feed.ts';
import type { RunOverride } from '#contracts/inbox-item.ts';
import type { Authority } from '#contracts/outcome.ts';
import type { AgentServiceEvent } from '#contracts/plugin-parts.ts';
import type { Probe } from '#contracts/probe.ts';
import type { RunTarget } from '#contracts/route.ts';
import { compact } from '../commands/compact.ts';
import type { Feed, LagNote } from '../queue/feed.ts';
import type { Reservation } from '../queue/lane-workers.ts';
import { readableText } from '../replies/reply-pipeline.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import type { InboxContent } from '../store/base/json.ts';
import { type LaneRef, type LaneSpec, newRowId } from '../store/base/keys.ts';
import { enqueueItems, findEnqueued } from '../store/intake/enqueue-items.ts';
import { type CancelSessionInput, cancelSession } from '../store/intake/stop.ts';
import type { EnqueuedItem, InnerItem } from '../store/items/enqueue-item.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { readIsBusy, readLaneWork } from '../store/reads/read-busy.ts';
import { type RunResult, readRunResult, readRunTexts } from '../store/reads/read-run-result.ts';
import { digestOfFiles, type FilesPlace, type MessageFile, removeFiles, saveFiles } from './message-files.ts';

export type AgentServiceDeps = FilesPlace & {
  readonly store: Store;
  readonly clock: Clock;
  readonly probe: Probe;
  /** Returns the lane of the owner's main conversation with an agent. Throws `invalid_input` for an unknown agent. */
  ownerLane(agentId: string | undefined): LaneSpec;
  /** Starts the work that the commit made due. Never waits, never throws. */
  start(effects: Effects): void;
  readonly feed: Pick<Feed, 'watch' | 'subscribe'>;
  /** Reserves slots for a lane of the class that the commit makes due; undefined when none is free. */
  reserve(laneClass: string, most: number): Reservation | undefined;
  /** Largest file of a message, bytes. */
  readonly maxFileBytes: number;
};

/** Names a session. */
export type SessionChoice = {
  /** An existing session, not combined with `agent`; absent: the owner's main conversation with the agent. */
  readonly session?: string | undefined;
  /** Absent: the default agent. */
  readonly agent?: string | undefined;
};

/** `isStreaming`: a process is working on its run. */
export type SessionWork = { readonly isBusy: boolean; readonly isStreaming: boolean };

/** A message to an agent. */
export type AgentMessageInput = SessionChoice & {
  readonly message: string;
  /** The sender's idempotency key: repeating it returns the same run. */
  readonly key?: string | undefined;
  readonly files?: readonly MessageFile[] | undefined;
  /** Sets something for the run; then the message joins no other one, and nothing joins its. */
  readonly override?: RunOverride | undefined;
};

/** A message that is stored. */
export type AcceptedMessage = {
  /** A reserved id: the message starts this run, unless another run takes the message. */
  readonly runId: string;
  readonly session: string;
  readonly acceptedAt: number;
};

/** Messages to an agent from inside Parley, without a channel. */
export interface AgentService {
  /**
   * Sends a message and reports its progress from now on; the message is sent even if the events aren't read. In
   * a busy session, the queue mode decides when it runs. Aborting ends the events, not the run. Faults are events.
   */
  run(input: AgentMessageInput, signal: AbortSignal): AsyncIterable<AgentServiceEvent>;
  /**
   * Gives the session's run a message at its next boundary, in any mode, with that run's authority; without a run,
   * starts one. Throws like `send`.
   */
  steer(session: string, text: string, key?: string): Promise<AcceptedMessage>;
  /** Stops the session's run or summary, its sub-agents, and waiting messages of programs. False: there were none. */
  cancel(session: string): Promise<boolean>;
  /**
   * Cancels the message of that reserved run if it is still waiting, or stops the run that has taken it. False: it has
   * already ended. Undefined for an unknown id.
   */
  cancelRun(runId: string): Promise<boolean | undefined>;
  /**
   * Summarizes the older part of a session that isn't busy, reporting progress and completion; `cancel` stops it.
   * A history too short to be worth summarizing stays unchanged.
   */
  summarize(session: string, signal: AbortSignal): AsyncIterable<AgentServiceEvent>;
  /**
   * Asks for that summary, once per key, and doesn't wait for it: its run has an id like any other. Undefined while the
   * session is busy. Throws like `send`.
   */
  requestSummary(
    input: SessionChoice & { readonly key?: string | undefined },
  ): Promise<AcceptedMessage | undefined>;
  /** Describes the session's work; undefined for an unknown session. */
  workOf(session: string): Promise<SessionWork | undefined>;
  /** Says whether the session has an unfinished run or a waiting message. */
  isSessionBusy(session: string): Promise<boolean>;
  /** Says whether any session is busy. */
  isBusy(): Promise<boolean>;
  /** Says whether a process is working on the session's run; a run waiting for an outside result doesn't count. */
  isStreaming(session: string): Promise<boolean>;
  /** Returns the session's events from this call on, until the signal aborts; buffers 64 for a slow reader. */
  events(session: string, signal: AbortSignal): AsyncIterable<FeedEvent | LagNote>;
  /**
   * Sends a message; resolves after the commit. Throws `invalid_input` for an unknown session, for both an agent and a
   * session, and for a file that is too large, and `key_reused` for another message's key.
   */
  send(input: AgentMessageInput): Promise<AcceptedMessage>;
  /** Waits for the run's result; resolves with `open` if it hasn't ended after `timeoutMs`. Never stops the run. */
  wait(runId: string, timeoutMs: number, signal: AbortSignal): Promise<RunResult>;
  /** Returns everything that the message's run has said since, oldest first; the last one is the answer. */
  payloadsOf(runId: string): Promise<readonly { readonly text: string }[]>;
}

/** Interval between reads of the store, in case the event of a run's end is lost. */
const lookMs = 1000;

/** Creates the service over this process's store and lanes. */
export function createAgentService(deps: AgentServiceDeps): AgentService {
  const { store, clock, feed } = deps;
  const workOf = (session: string) => store.read(readLaneWork, { laneKey: session });
  const cancel = async (what: CancelSessionInput) => {
    const { isCancelled, effects } = await store.write(cancelSession, what);
    deps.start(effects);
    return isCancelled;
  };
  return {
    send: async (input) => send(deps, input, laneOf(deps, input)),
    run: (input, signal) => {
      const order = { lane: () => laneOf(deps, input), send: (lane: LaneRef) => send(deps, input, lane) };
      return startRun(deps, order, signal);
    },
    steer: async (session, text, key) => {
      const { run } = await workOf(session);
      const { target = 'record', authority = 'owner' } = run ?? {};
      // The run's own authority, which Parley stored: a steer with a different one would wait for the next run.
      const reach = { reach: 'always', target, authority: authority as Authority } as const;
      return send(deps, { message: text, key }, { key: session }, reach);
    },
    cancel: (session) => cancel({ laneKey: session }),
    cancelRun: async (runId) => {
      const result = await store.read(readRunResult, { runId });
      return result.kind === 'unknown' ? undefined : cancel({ laneKey: result.laneKey, runId });
    },
    summarize: async function* (session, signal) {
      const { run, hasWaiting } = await workOf(session);
      if (run !== undefined || hasWaiting)
        return yield { type: 'error', error: 'The session is busy.', done: true };
      const order = { lane: () => ({ key: session }), send: (lane: LaneRef) => askToCompact(deps, lane) };
      yield { type: 'summarize', done: false };
      for await (const event of startRun(deps, order, signal))
        if (event.progress !== undefined) yield event;
        else if (event.done) yield event.type === 'error' ? event : { type: 'summarize', done: true };
    },
    requestSummary: async ({ key, ...choice }) => requestSummary(deps, laneOf(deps, choice), key),
    workOf: async (session) => {
      const { isKnown, run, hasWaiting } = await workOf(session);
      if (!isKnown) return undefined;
      return { isBusy: run !== undefined || hasWaiting, isStreaming: run?.isHeld ?? false };
    },
    isSessionBusy: async (session) => {
      const { run, hasWaiting } = await workOf(session);
      return run !== undefined || hasWaiting;
    },
    isBusy: () => store.read(readIsBusy, {}),
    isStreaming: async (session) => (await workOf(session)).run?.isHeld ?? false,
    events: (session, signal) => feed.subscribe(session, signal),
    payloadsOf: async (runId) =>
      (await store.read(readRunTexts, { runId }))
        .map((text) => ({ text: readableText(text, ['chat']) }))
        .filter(({ text }) => text !== ''),
    wait: (runId, timeoutMs, signal) => waitForEnd(deps, runId, { until: clock.now() + timeoutMs, signal }),
  };
}

type RunOrder = {
  /** Throws `invalid_input` for an invalid lane. */
  lane(): LaneRef;
  send(lane: LaneRef): Promise<AcceptedMessage>;
};

/** Subscribes before sending, so that no event of the run is missed. */
function startRun(
  deps: AgentServiceDeps,
  order: RunOrder,
  signal: AbortSignal,
): AsyncIterable<AgentServiceEvent> {
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  const begin = async () => {
    const lane = order.lane();
    return { lane, events: deps.feed.subscribe(lane.key, until) };
  };
  const begun = begin();
  const accepted = begun.then(({ lane }) => order.send(lane));
  // A failure reaches the consumer once there is one.
  accepted.catch(() => undefined);
  const ended = (runId: string) => waitForEnd(deps, runId, { signal: until });
  return tell();

  async function* tell() {
    try {
      const { events } = await begun.catch(() => ({
        events: deps.feed.subscribe('', AbortSignal.abort()),
      }));
      yield* followRun({ accepted, events, ended });
    } finally {
      over.abort();
    }
  }
}

/** Waits for the run's result; resolves with what is stored when the signal aborts, or at a time. */
export async function waitForEnd(
  deps: Pick<AgentServiceDeps, 'store' | 'feed' | 'clock'>,
  runId: string,
  { until = Number.POSITIVE_INFINITY, signal }: { readonly until?: number; readonly signal: AbortSignal },
): Promise<RunResult> {
  using watch = watchRun(deps, runId);
  for (;;) {
    const { result, changed } = await watch.look();
    const leftMs = until - deps.clock.now();
    if (result.kind !== 'open' || leftMs <= 0 || signal.aborted) return result;
    await deps.clock.wait(Math.min(lookMs, leftMs), AbortSignal.any([signal, changed]));
  }
}

function laneOf({ ownerLane }: AgentServiceDeps, { session, agent }: SessionChoice): LaneRef {
  if (session === undefined) return ownerLane(agent);
  if (agent === undefined) return { key: session };
  throw new ParleyError(
    'invalid_input',
    'Name an agent or a session, not both: a session already has an agent.',
  );
}

/** A repeated request finds the first one's summary, which may be why the session is busy. */
async function requestSummary(
  deps: AgentServiceDeps,
  lane: LaneRef,
  key?: string,
): Promise<AcceptedMessage | undefined> {
  const { store } = deps;
  const known =
    key === undefined ? undefined : await store.read(findEnqueued, { sourceKey: sourceKeyOf(key) });
  const { run, hasWaiting } = await store.read(readLaneWork, { laneKey: lane.key });
  const isBusy = run !== undefined || hasWaiting;
  return known === undefined && isBusy ? undefined : askToCompact(deps, lane, key);
}

/** Queues the command that a person would send, in the lane's order; it posts no notice. */
async function askToCompact(
  deps: AgentServiceDeps,
  lane: LaneRef,
  key = newRowId(),
): Promise<AcceptedMessage> {
  const place = { reach: 'mode', target: 'record', authority: 'owner' } as const;
  const text = `/${compact.name}`;
  const item = apiItem(text, { key, now: deps.clock.now() }, place);
  const command = { name: compact.name, input: {} };
  // A message with the same words is a different request.
  const content = { ...item.content, command, digest: compact.name };
  return acceptedOf(await enqueue(deps, lane, { ...item, content }), {
    lane,
    key,
    text,
    digest: compact.name,
  });
}

async function send(
  deps: AgentServiceDeps,
  { message: text, key = newRowId(), files = [], override }: Omit<AgentMessageInput, 'session' | 'agent'>,
  lane: LaneRef,
  place: ItemPlace = { reach: override ? 'alone' : 'mode', target: 'record', authority: 'owner' },
): Promise<AcceptedMessage> {
  const tooLarge = files.find(({ bytes }) => bytes.length > deps.maxFileBytes);
  if (tooLarge)
    throw new ParleyError('invalid_input', `A file may have ${deps.maxFileBytes} bytes; one has more.`);
  const digest = digestOf({ files, override, reach: place.reach });
  const facts = { key, now: deps.clock.now(), ...(override && { override }), ...(digest && { digest }) };
  const id = newRowId();
  const stored = await saveFiles(deps, id, files);
  let item: EnqueuedItem | undefined;
  try {
    item = await enqueue(deps, lane, { ...apiItem(text, { ...facts, stored }, place), id });
    return acceptedOf(item, { lane, key, text, digest });
  } catch (error) {
    // After any other fault the message may have been stored.
    if (error instanceof ParleyError && error.code === 'invalid_input')
      await removeFiles(deps.mediaDir, stored);
    throw error;
  } finally {
    // A repeat's files are those of the first call.
    if (item && item.id !== id) await removeFiles(deps.mediaDir, stored);
  }
}

type MessageRequest = {
  readonly lane: LaneRef;
  readonly key: string;
  readonly text: string;
  readonly digest: string | undefined;
};

/** Describes the stored item, if it is what was asked for. Throws `key_reused` otherwise. */
function acceptedOf(stored: EnqueuedItem, { lane, key, text, digest }: MessageRequest): AcceptedMessage {
  if (stored.laneKey !== lane.key || stored.text !== text || stored.digest !== digest)
    throw new ParleyError('key_reused', `The key ${key} belongs to another message.`);
  return { runId: stored.reservedRunId ?? '', session: stored.laneKey, acceptedAt: stored.enqueuedAt };
}

/** Hashes what is asked besides the text; undefined if that is nothing. */
function digestOf({
  files = [],
  override,
  reach,
}: Pick<AgentMessageInput, 'files' | 'override'> & Pick<InnerItem, 'reach'>): string | undefined {
  if (files.length === 0 && override === undefined && reach === 'mode') return undefined;
  const asked = [reach, override?.timeoutMs, override?.prompt, digestOfFiles(files)];
  return createHash('sha256').update(JSON.stringify(asked)).digest('base64url');
}

/** Reads a run's result and watches for changes: `changed` aborts when the result may be out of date. */
function watchRun({ store, feed }: Pick<AgentServiceDeps, 'store' | 'feed'>, runId: string) {
  const over = new AbortController();
  let changed = new AbortController();
  let isWatched = false;
  const look = async (): Promise<{ readonly result: RunResult; readonly changed: AbortSignal }> => {
    // Created before reading, because a concurrent change may be missing from what was read.
    changed = new AbortController();
    const result = await readReadableResult({ store }, runId);
    if (result.kind !== 'open' || isWatched) return { result, changed: changed.signal };
    isWatched = true;
    feed.watch(result.laneKey, (event) => changesLane(event) && changed.abort(), over.signal);
    return look();
  };
  return { look, [Symbol.dispose]: () => over.abort() };
}

/** Reads a run's result with a readable answer. */
export async function readReadableResult(
  { store }: Pick<AgentServiceDeps, 'store'>,
  runId: string,
): Promise<RunResult> {
  return readable(await store.read(readRunResult, { runId }));
}

/** Makes the answer readable; the store has it as the model wrote it. */
function readable(result: RunResult): RunResult {
  if (result.kind !== 'ended') return result;
  return { ...result, text: result.outcome === 'silent' ? '' : readableText(result.text, ['chat']) };
}

type ItemPlace = Pick<InnerItem, 'reach' | 'authority'> & { readonly target: RunTarget };
type ItemFacts = Pick<InboxContent, 'override' | 'digest' | 'stored'> & {
  readonly key: string;
  readonly now: number;
};

const sourceKeyOf = (key: string) => `api:${key}`;

/** Creates an item with the owner's authority, since its sender holds the access token. */
function apiItem(text: string, { key, now, stored = [], ...set }: ItemFacts, place: ItemPlace): InnerItem {
  const content = { text, prompt: text, sender: { id: 'api', name: 'API' }, sentAt: now, attachments: [] };
  return {
    ...place,
    id: newRowId(),
    source: 'api',
    sourceKey: sourceKeyOf(key),
    reservedRunId: newRowId(),
    content: { ...content, ...set, ...(stored.length > 0 && { stored }) },
  };
}

async function enqueue(deps: AgentServiceDeps, lane: LaneRef, item: InnerItem): Promise<EnqueuedItem> {
  const slots = 'class' in lane ? deps.reserve(lane.class, 1) : undefined;
  let runs: readonly ClaimedRun[] = [];
  try {
    const input = { items: [{ lane, item }], ...(slots && { claims: slots.terms }) };
    const enqueued = await deps.store.write(enqueueItems, input);
    runs = enqueued.runs;
    deps.probe.reach('item-enqueued');
    deps.start(enqueued.effects);
    const [stored] = enqueued.items;
    if (!stored) throw new ParleyError('internal', `Item ${item.sourceKey} was not stored.`);
    return stored;
  } finally {
    slots?.begin(runs);
  }
}

type FollowedRun = {
  /** Resolves with the run's id once its message is stored. */
  readonly accepted: Promise<{ readonly runId: string }>;
  readonly events: AsyncIterableIterator<FeedEvent | LagNote>;
  /** Resolves when the store has the run's end. Rejects only if the service fails. */
  ended(runId: string): Promise<RunResult>;
};

/** Reports a run's progress. Events only add speed: the end comes from the store, so a lost event does no harm. */
export async function* followRun({
  accepted,
  events,
  ended,
}: FollowedRun): AsyncGenerator<AgentServiceEvent, void, void> {
  try {
    const { runId } = await accepted;
    const end = ended(runId).then((result) => ({ result }));
    let message = '';
    for (let next = events.next(); ; ) {
      const step = await Promise.race([end, next]);
      if ('result' in step) return yield lastEvent(step.result);
      if (step.done) return yield lastEvent((await end).result);
      next = events.next();
      const event = step.value;
      if ('lagged' in event || !('runId' in event) || event.runId !== runId) continue;
      if (event.kind === 'compaction') yield summarizing(event);
      if (event.kind !== 'text' || event.of !== 'chat') continue;
      // Something before it was missed; the end of the run has the whole text.
      if (event.at > message.length) continue;
      message = message.slice(0, event.at) + event.text;
      yield { type: 'response', message, done: false };
    }
  } catch (error) {
    const fault = error instanceof ParleyError ? error.message : 'internal';
    yield { type: 'error', error: fault, done: true };
  } finally {
    await events.return?.();
  }
}

function summarizing({ state, progress }: Extract<FeedEvent, { kind: 'compaction' }>): AgentServiceEvent {
  return {
    ...{ type: 'summarize', done: false },
    ...(progress !== undefined && { progress }),
    ...(state === 'failed' && { error: 'failed' }),
  };
}

function lastEvent(result: RunResult): AgentServiceEvent {
  if (result.kind !== 'ended') return { type: 'error', error: result.kind, done: true };
  const { outcome, reason, text } = result;
  if (outcome === 'answered' || outcome === 'silent') return { type: 'response', message: text, done: true };
  return { type: 'error', error: reason ?? outcome, done: true };
}
