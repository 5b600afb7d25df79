/** Finds the place where a history is cut when a summary replaces its older part. Pure. */
import { type AgentMessage, toolCallsOf } from '#contracts/message.ts';
import { isCounted } from './call-pairs.ts';
import { estimateTokens, messageTokens } from './context-size.ts';

/** Sizes in tokens. */
export type ContextLimits = {
  /** Compaction is due above this. */
  readonly threshold: number;
  /** How much of the newest messages stays as it was written. */
  readonly tail: number;
  /** Longest summary, with the identifiers that are appended to it. */
  readonly summary: number;
};

/** Room for the prompt, the tools and the answer, tokens. */
const reserve = 20_000;
const longestContext = 200_000;
const longestTail = 20_000;
const longestSummary = 6_000;
/**
 * Compaction is also due above so many messages. Each adds about a 750th of the processor time of a short
 * conversation's turn, in every turn: it is read, paired and sent. So the turn before a summary takes 1.8 × the time of
 * a short one, where the goal is 2 ×. Fewer would forget sooner and save little: each message is summarised once,
 * however often that happens.
 */
export const mostMessages = 600;
/** As many of the newest stay at most: a third of them, so that a summary frees far more than it has to. */
const tailMessages = 200;
/** A compaction leaves at most this share of what there was, and is not begun if it would leave more. */
const mostLeft = 0.7;
/** Shares of a short context. */
const [tailShare, summaryShare] = [0.3, 0.3];
/** Below this nothing is worth a summary, tokens. */
const least = 500;

/** Limits for a model's window: small windows are shared out in proportion. */
export function contextLimits(window: number): ContextLimits {
  const threshold = Math.min(longestContext, window - Math.min(reserve, Math.floor(window / 4)));
  return {
    threshold,
    tail: Math.min(longestTail, Math.floor(threshold * tailShare)),
    summary: Math.min(longestSummary, Math.floor(threshold * summaryShare)),
  };
}

export type CompactionPlan = {
  /** The first message that stays as it was written. */
  readonly index: number;
  /** Longest summary of what is before it, tokens. */
  readonly summaryTokens: number;
  /** Size of the context now. */
  readonly oldTokens: number;
};

/**
 * Plans to replace the beginning of `messages`, and `summary` before them, by a new summary. Undefined when that
 * would not free 30 % or leave more than the threshold.
 */
export function planCompaction(
  messages: readonly AgentMessage[],
  summary: AgentMessage | undefined,
  limits: ContextLimits,
): CompactionPlan | undefined {
  const oldTokens = estimateTokens(summary === undefined ? messages : [summary, ...messages]);
  if (oldTokens < least) return undefined;
  const keepTokens = Math.min(limits.tail, Math.floor(oldTokens * tailShare));
  const index = cutOf(messages, keepTokens, tailMessages);
  if (index === undefined) return undefined;
  const summaryTokens = Math.min(limits.summary, Math.floor(oldTokens * summaryShare));
  const newTokens = summaryTokens + estimateTokens(messages.slice(index));
  if (newTokens > Math.min(oldTokens * mostLeft, limits.threshold)) return undefined;
  return { index, summaryTokens, oldTokens };
}

/**
 * The first message to keep, or the end: as many of the newest as `keepTokens` hold, from the start of a turn on, preferably
 * one that a person began. Everything the model has not answered yet is kept, and no call is parted from its
 * results. Undefined when nothing comes before.
 */
export function cutOf(
  messages: readonly AgentMessage[],
  keepTokens: number,
  keepMessages = messages.length,
): number | undefined {
  const unread = unreadFrom(messages);
  const allowed = boundariesOf(messages).filter((index) => index <= unread);
  const last = allowed.at(-1);
  if (last === undefined) return undefined;
  const kept = keptTokensFrom(messages);
  const fitting = allowed.filter(
    (index) => (kept[index] ?? 0) <= keepTokens && messages.length - index <= keepMessages,
  );
  const first = fitting[0] ?? last;
  const isWorthKeeping = (index: number) => (kept[index] ?? 0) * 2 >= (kept[first] ?? 0);
  return fitting.find((index) => isTurnStart(messages, index) && isWorthKeeping(index)) ?? first;
}

/** Places with something before them where no call is open: its results come after it, others may come between. */
function boundariesOf(messages: readonly AgentMessage[]): readonly number[] {
  const open = new Map<string, number>();
  const isInside = messages.map(() => false);
  for (const [index, message] of messages.entries()) {
    for (const { id } of toolCallsOf(message.parts)) open.set(id, index);
    for (const part of message.parts) {
      const call = part.type === 'tool_result' ? open.get(part.data.tool_call_id) : undefined;
      // Up to the last result marked before: each place is marked once.
      for (let at = index; call !== undefined && at > call && !isInside[at]; at -= 1) isInside[at] = true;
    }
  }
  return [...messages.keys(), messages.length].filter((index) => index > 0 && !isInside[index]);
}

/** The first message that the model has not answered: results of its last calls, and what people have sent since. */
export function unreadFrom(messages: readonly AgentMessage[]): number {
  const last = messages.findLastIndex((message) => message.role === 'assistant' && isCounted(message));
  const hasCalls = toolCallsOf(messages[last]?.parts ?? []).length > 0;
  return hasCalls ? last : last + 1;
}

/** Tokens from each message to the end. */
function keptTokensFrom(messages: readonly AgentMessage[]): readonly number[] {
  let sum = 0;
  return messages
    .toReversed()
    .map((message) => {
      sum += messageTokens(message);
      return sum;
    })
    .reverse();
}

function isTurnStart(messages: readonly AgentMessage[], index: number): boolean {
  const isOutside = (at: number) => messages[at]?.role === 'user' || messages[at]?.role === 'system';
  return isOutside(index) && !isOutside(index - 1);
}
