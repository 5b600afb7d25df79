/** Chooses where to cut a history whose older part is replaced by a summary. Pure. */
import { type AgentMessage, toolCallsOf } from '#contracts/message.ts';
import { isCounted } from './call-pairs.ts';
import { estimateTokens, messageTokens } from './fit-context.ts';

/** Sizes in tokens. */
export type ContextLimits = {
  /** Compaction is due above this. */
  readonly threshold: number;
  /** How much of the newest messages is kept verbatim. */
  readonly tail: number;
  /** Longest summary, including the identifiers appended to it. */
  readonly summary: number;
};

/** Tokens reserved for the prompt, the tools and the answer. */
const reserve = 20_000;
const longestContext = 200_000;
const longestTail = 20_000;
const longestSummary = 6_000;
/**
 * Compaction is also due above this many messages. Each message is read, paired and sent in every turn, which costs
 * about 1/750 of the processor time of a short conversation's turn. So the turn before a summary takes 1.8 × as long as
 * a short one, where the goal is 2 ×. A lower limit would forget sooner and save little, since each message is
 * summarized only once, no matter how often compaction happens.
 */
export const maxMessages = 600;
/** At most this many of the newest messages are kept: a third, so that a summary frees far more than it must. */
const tailMessages = 200;
/** A compaction must leave at most this share of the context; otherwise it isn't started. */
const maxLeft = 0.7;
/** Shares used for a short context. */
const [tailShare, summaryShare] = [0.3, 0.3];
/** Smaller contexts aren't worth a summary, tokens. */
const least = 500;

/** Returns the limits for a model's window of `window` tokens; small windows are divided proportionally. */
export function contextLimits(window: number): ContextLimits {
  const threshold = Math.min(longestContext, window - Math.min(reserve, Math.floor(window / 4)));
  return {
    threshold,
    tail: Math.min(longestTail, Math.floor(threshold * tailShare)),
    summary: Math.min(longestSummary, Math.floor(threshold * summaryShare)),
  };
}

export type CompactionPlan = {
  /** The first message that is kept verbatim. */
  readonly index: number;
  /** Longest summary of the messages before it, tokens. */
  readonly summaryTokens: number;
  /** Current size of the context, tokens. */
  readonly oldTokens: number;
};

/**
 * Plans to replace the beginning of `messages`, and the `summary` before them, with a new summary. Returns undefined if
 * that would free less than 30 % or leave more than the threshold.
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
  if (newTokens > Math.min(oldTokens * maxLeft, limits.threshold)) return undefined;
  return { index, summaryTokens, oldTokens };
}

/**
 * Returns the index of the first message to keep, which may be the end of the list. As many of the newest messages are
 * kept as fit into `keepTokens`, preferably from the start of a turn. Everything that the model has not answered yet is
 * kept, and no call is separated from its results. Undefined when there is nothing to cut.
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

/**
 * Possible cuts: every index after the first where no call is open. Other messages may separate a call from its
 * results.
 */
function boundariesOf(messages: readonly AgentMessage[]): readonly number[] {
  const open = new Map<string, number>();
  const isInside = messages.map(() => false);
  for (const [index, message] of messages.entries()) {
    for (const { id } of toolCallsOf(message.parts)) open.set(id, index);
    for (const part of message.parts) {
      const call = part.type === 'tool_result' ? open.get(part.data.tool_call_id) : undefined;
      // Stops at the last index already marked, so each index is marked only once.
      for (let at = index; call !== undefined && at > call && !isInside[at]; at -= 1) isInside[at] = true;
    }
  }
  return [...messages.keys(), messages.length].filter((index) => index > 0 && !isInside[index]);
}

/** Returns the first index that must be kept: the last answer if it made calls, else the first message after it. */
export function unreadFrom(messages: readonly AgentMessage[]): number {
  const last = messages.findLastIndex((message) => message.role === 'assistant' && isCounted(message));
  const hasCalls = toolCallsOf(messages[last]?.parts ?? []).length > 0;
  return hasCalls ? last : last + 1;
}

/** Counts the tokens from each message to the end. */
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
