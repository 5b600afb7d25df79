/**
 * Calls of programs that speak another vendor's API: each is a message in a conversation of the token's own, and its
 * answer is the run's. A repeated call waits for the same run, and a caller who goes away stops nothing.
 */
import { createHash } from 'node:crypto';
import type { StoredAttachment } from '#contracts/attachment.ts';
import type { FeedEvent } from '#contracts/feed.ts';
import { accountId, agentId, channelId, peerId } from '#contracts/ids.ts';
import { isImageType } from '#contracts/message.ts';
import type { Authority } from '#contracts/outcome.ts';
import { formatSessionKey, parseSessionKey } from '#contracts/session-key.ts';
import { sniffType } from '../media/sniff.ts';
import type { LagNote } from '../queue/feed.ts';
import { type LaneSpec, newRowId } from '../store/base/keys.ts';
import { type ApiCallResult, acceptApiCall } from '../store/intake/accept-api-call.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { type RunResult, readArrival } from '../store/reads/read-run-result.ts';
import { type AgentServiceDeps, followRun, readReadableResult, waitForEnd } from './agent-service.ts';
import { type FilesPlace, removeFiles, saveFiles } from './message-files.ts';

/** The holder of a token. */
export type ProgramCaller = {
  /** The token's id; `owner` for the access token. */
  readonly id: string;
  readonly name: string;
  readonly authority: Authority;
};

export type ProgramCall = {
  readonly caller: ProgramCaller;
  readonly agent: string;
  /** Names a conversation of the caller's; absent: a new one. */
  readonly conversation?: string | undefined;
  /** Continues the conversation of an earlier call's run, instead. */
  readonly after?: string | undefined;
  readonly text: string;
  /** The text for the model, if it gets more than people see. */
  readonly prompt?: string | undefined;
  readonly images: readonly Buffer[];
  /** Hash of the request. */
  readonly digest: string;
  /** The caller's idempotency key, if it has one. */
  readonly key?: string | undefined;
  /** How many attempts the client has made before. */
  readonly retry: number;
};

/** A call that is stored, or was before. */
export type AcceptedCall = {
  readonly kind: 'accepted';
  readonly runId: string;
  readonly conversation: string;
  readonly acceptedAt: number;
  /** Reports the answer so far, then the run's result, unless the signal aborts first. */
  readonly events: AsyncGenerator<ProgramEvent, void, void>;
};

export type ProgramEvent =
  /** The part that the model has written of its present message. */
  { readonly kind: 'text'; readonly text: string } | { readonly kind: 'ended'; readonly result: RunResult };

/** A call of which nothing is stored. */
export type RefusedCall = {
  readonly kind: 'refused';
  readonly reason: 'unknown_agent' | 'unknown_response' | 'other_agent' | 'key_reused' | 'image_unreadable';
};

/** An earlier call, as the store has it. */
export type StoredCall = {
  readonly agent: string;
  readonly conversation: string;
  readonly acceptedAt: number;
  readonly result: RunResult;
};

/** The entrance for calls of programs. */
export interface ProgramCalls {
  /** The agents that can be called. */
  readonly agents: readonly { readonly id: string }[];
  readonly defaultAgent: string;
  /**
   * Stores the call; resolves after the commit. Aborting only ends its events. Throws what the store throws.
   */
  accept(call: ProgramCall, signal: AbortSignal): Promise<AcceptedCall | RefusedCall>;
  /** Finds a call of this caller by its run; undefined for another caller's, as for one that doesn't exist. */
  find(caller: ProgramCaller, runId: string): Promise<StoredCall | undefined>;
  /** Returns the events of a conversation from this call on, until the signal aborts. */
  follow(laneKey: string, signal: AbortSignal): AsyncIterableIterator<FeedEvent | LagNote>;
}

export type ProgramCallsDeps = Pick<
  AgentServiceDeps,
  'store' | 'clock' | 'probe' | 'start' | 'feed' | 'reserve'
> &
  FilesPlace & {
    readonly agents: readonly { readonly id: string }[];
    readonly defaultAgent: string;
    /** Describes the lane of a caller's conversation with an agent. */
    laneFor(agent: string, caller: string, conversation: string): LaneSpec;
  };

/** Creates the entrance for calls of programs. */
export function createProgramCalls(deps: ProgramCallsDeps): ProgramCalls {
  return {
    agents: deps.agents.map(({ id }) => ({ id })),
    defaultAgent: deps.defaultAgent,
    accept: async (call, signal) => {
      if (!deps.agents.some(({ id }) => id === call.agent)) return refused('unknown_agent');
      if (call.images.some((image) => !isImageType(sniffType(image)))) return refused('image_unreadable');
      const key = call.key ?? newRowId();
      const earlier = call.after === undefined ? undefined : await continued(deps, call, call.after);
      if (typeof earlier === 'object') return earlier;
      const conversation = earlier ?? call.conversation ?? newConversation(call.caller.id, key);
      return store(deps, call, { key, conversation, signal });
    },
    find: async (caller, runId) => {
      const arrival = await deps.store.read(readArrival, { runId });
      const place = arrival && ownPlace(arrival.laneKey, caller);
      if (!place) return undefined;
      const result = await readReadableResult(deps, runId);
      return { ...place, acceptedAt: arrival.acceptedAt, result };
    },
    follow: (laneKey, signal) => deps.feed.subscribe(laneKey, signal),
  };
}

function refused(reason: RefusedCall['reason']): RefusedCall {
  return { kind: 'refused', reason };
}

/** Derives the name of a new conversation from the key, so that a repeat means the same one. */
function newConversation(caller: string, key: string): string {
  return `conv_${createHash('sha256').update(`${caller}/${key}`).digest('hex').slice(0, 32)}`;
}

/** Returns the conversation of an earlier call; of another caller's, it says no more than of one that doesn't exist. */
async function continued(
  { store }: Pick<ProgramCallsDeps, 'store'>,
  { caller, agent }: ProgramCall,
  runId: string,
): Promise<string | RefusedCall> {
  const arrival = await store.read(readArrival, { runId });
  const place = arrival && ownPlace(arrival.laneKey, caller);
  if (!place) return refused('unknown_response');
  return place.agent === agent ? place.conversation : refused('other_agent');
}

/** Returns the conversation with this key; undefined if it isn't one of the caller's. */
function ownPlace(
  laneKey: string,
  caller: ProgramCaller,
): { readonly agent: string; readonly conversation: string } | undefined {
  const parts = parseSessionKey(laneKey);
  if (parts?.kind !== 'direct' || parts.peer === null) return undefined;
  if (parts.account !== programAccount || parts.channel !== caller.id) return undefined;
  return { agent: parts.agent, conversation: parts.peer };
}

/** The account in the session keys of programs' conversations; the channel is the token's id. */
export const programAccount = 'api';

type Place = { readonly key: string; readonly conversation: string; readonly signal: AbortSignal };

async function store(
  deps: ProgramCallsDeps,
  call: ProgramCall,
  { key, conversation, signal }: Place,
): Promise<AcceptedCall | RefusedCall> {
  const { caller, agent, digest, retry } = call;
  const lane = deps.laneFor(agent, caller.id, conversation);
  const id = newRowId();
  const images = call.images.map((bytes, index) => ({ name: `image ${index + 1}`, bytes }));
  const stored = await saveFiles(deps, id, images);
  const item = { ...itemOf(call, deps.clock.now(), stored), id };
  // Followed before it is stored, so that the beginning of the answer isn't missed.
  const following = followLane(deps, lane.key, signal);
  const slots = deps.reserve(lane.class, 1);
  let runs: readonly ClaimedRun[] = [];
  let result: ApiCallResult | undefined;
  try {
    const claims = slots && { claims: slots.terms };
    const input = { caller: caller.id, key, retry, digest, lane, item, ...claims };
    result = await deps.store.write(acceptApiCall, input);
    if (result.kind === 'reused') return refused('key_reused');
    runs = result.runs;
    deps.probe.reach('item-enqueued');
    deps.start(result.effects);
    return accepted(result.item, (runId, laneKey) => following.run(runId, laneKey));
  } finally {
    slots?.begin(runs);
    if (result?.kind !== 'accepted') following.stop();
    // A repeat's files are those of the first call.
    const isRepeat = result !== undefined && (result.kind !== 'accepted' || result.item.id !== id);
    // After a fault the call may have been stored.
    if (isRepeat) await removeFiles(deps.mediaDir, stored);
  }
}

function itemOf(
  { caller, text, prompt = text }: ProgramCall,
  now: number,
  stored: readonly StoredAttachment[],
) {
  const sender = { id: caller.id, name: caller.name };
  const content = { text, prompt, sender, sentAt: now, attachments: [] };
  return {
    source: 'api',
    reach: 'mode',
    target: 'record',
    authority: caller.authority,
    reservedRunId: newRowId(),
    content: stored.length > 0 ? { ...content, stored } : content,
  } as const;
}

function accepted(
  item: { readonly reservedRunId: string | undefined; readonly laneKey: string; readonly enqueuedAt: number },
  follow: (runId: string, laneKey: string) => AcceptedCall['events'],
): AcceptedCall {
  const { reservedRunId: runId = '', laneKey, enqueuedAt: acceptedAt } = item;
  const parts = parseSessionKey(laneKey);
  const conversation = parts?.kind === 'direct' ? (parts.peer ?? '') : '';
  return { kind: 'accepted', runId, acceptedAt, conversation, events: follow(runId, laneKey) };
}

/** Subscribes to a lane until it is stopped, the signal aborts, or the run that is followed has ended. */
function followLane(deps: ProgramCallsDeps, laneKey: string, signal: AbortSignal) {
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  const subscribed = deps.feed.subscribe(laneKey, until);
  return {
    stop: () => over.abort(),
    run: async function* (runId: string, storedIn: string): AcceptedCall['events'] {
      let result: RunResult | undefined;
      const ended = async (id: string) => {
        result = await waitForEnd(deps, id, { signal: until });
        return result;
      };
      // A repeated call without a name for its conversation has that of the first.
      const events = storedIn === laneKey ? subscribed : deps.feed.subscribe(storedIn, until);
      try {
        for await (const event of followRun({ accepted: Promise.resolve({ runId }), events, ended }))
          if (event.type === 'response' && !event.done) yield { kind: 'text', text: event.message ?? '' };
        result ??= await ended(runId);
        if (result.kind !== 'open') yield { kind: 'ended', result };
      } finally {
        over.abort();
      }
    },
  };
}

/** Returns the session key of a caller's conversation with an agent. */
export function programLaneKey(agent: string, caller: string, conversation: string): string {
  const place = {
    account: accountId(programAccount),
    channel: channelId(caller),
    peer: peerId(conversation),
  };
  return formatSessionKey({ kind: 'direct', agent: agentId(agent), ...place });
}
