// Finds a resumed run's own part of the transcript: the calls it has made, and its last batch.

import { type AgentMessage, toolCallsOf } from '#contracts/message.ts';
import { isCounted } from './call-pairs.ts';
import type { MadeCall } from './loop-guard.ts';

/** How far a run's call had progressed when its last holder left it. */
export type CallEntry = {
  readonly callId: string;
  /** The message that made it. */
  readonly messageId: string;
  /** `started`: it may have had its effect, so its tool's replay class decides. `done`: it has its result. */
  readonly state: 'fresh' | 'asked' | 'started' | 'done';
  /** The question about an asked call. */
  readonly asked?: AskedCall;
  /** Its call, if a summary replaced the message; absent in old records. */
  readonly summarized?: MadeCall;
};

/** A call that a person was asked about. */
export type AskedCall = {
  readonly verdict: 'open' | 'approved' | 'denied' | 'expired' | 'void';
  /** The arguments that were asked about, as in `CallQuestion`. */
  readonly input: string;
  readonly digest: string;
};

/** How a call enters its batch. */
export type CallState =
  | { readonly kind: 'fresh' }
  | ({ readonly kind: 'asked' } & AskedCall)
  /** `asked`: the question that was approved before it started. */
  | { readonly kind: 'started'; readonly asked?: AskedCall }
  | { readonly kind: 'done'; readonly result: AgentMessage };

/** The last message with calls of a resumed run. */
export type OpenBatch = {
  readonly message: AgentMessage;
  /** By call id; a missing call is `fresh`. */
  readonly states: ReadonlyMap<string, CallState>;
  /** True if a steer was taken after the message. */
  readonly isOvertaken: boolean;
};

export type Resumption = {
  /** Ids of all calls that the run has made, including those replaced by a summary. */
  readonly callIds: readonly string[];
  /** The calls before the batch in source order, for the loop guard. */
  readonly earlier: readonly MadeCall[];
  /** Turns before the batch or, without one, before the next model call. */
  readonly turns: number;
  /** Absent when no message of the run ends in calls. */
  readonly batch?: OpenBatch;
};

/** A run that has done nothing yet. */
export const noResumption: Resumption = { callIds: [], earlier: [], turns: 0 };

/**
 * Finds the calls of `entries` in the transcript. A call of unknown state counts as started. Turns are counted by the
 * entries, since a summary may have replaced their messages.
 */
export function findResumption(messages: readonly AgentMessage[], entries: readonly CallEntry[]): Resumption {
  const states = new Map(entries.map((entry) => [entry.callId, entry]));
  const calling = messages.filter(
    (each) => isCounted(each) && toolCallsOf(each.parts).some(({ id }) => states.has(id)),
  );
  const last = messages.findLast((each) => each.role === 'assistant' && isCounted(each));
  const isOpen = last !== undefined && calling.at(-1) === last;
  const before = isOpen ? calling.slice(0, -1) : calling;
  const turns = new Set(entries.map(({ messageId }) => messageId));
  return {
    callIds: entries.map(({ callId }) => callId),
    earlier: [
      ...entries.flatMap(({ summarized }) => summarized ?? []),
      ...before.flatMap(({ parts }) => toolCallsOf(parts)),
    ],
    turns: turns.size - (isOpen ? 1 : 0),
    ...(isOpen && { batch: openBatch(last, messages.slice(messages.indexOf(last) + 1), states) }),
  };
}

function openBatch(
  message: AgentMessage,
  behind: readonly AgentMessage[],
  entries: ReadonlyMap<string, CallEntry>,
): OpenBatch {
  const entered = toolCallsOf(message.parts).map(({ id }): [string, CallState] => {
    const result = behind.find(({ parts }) => hasResultOf(parts, id));
    if (result !== undefined) return [id, { kind: 'done', result }];
    const { state, asked } = entries.get(id) ?? {};
    if (state === 'asked' && asked !== undefined) return [id, { kind: 'asked', ...asked }];
    return [id, state === 'fresh' ? { kind: 'fresh' } : { kind: 'started', ...(asked && { asked }) }];
  });
  return {
    message,
    states: new Map(entered),
    isOvertaken: behind.some(({ role }) => role === 'user'),
  };
}

function hasResultOf(parts: AgentMessage['parts'], callId: string): boolean {
  return parts.some((part) => part.type === 'tool_result' && part.data.tool_call_id === callId);
}
