/**
 * The last resort for a context that exceeds the model's window and can't be summarised: its oldest messages are
 * omitted from the request, though never from the store. The summary stays, and no call is separated from its results.
 */
import { transcriptId } from '#contracts/ids.ts';
import type { AgentMessage, MessagePart } from '#contracts/message.ts';
import { estimateTokens, messageTokens } from './context-size.ts';

/** Sizes in tokens. */
export type FitTerms = {
  readonly window: number;
  /**
   * Size of the context as the run knows it, based on the last call's own count if there is one. The estimate alone
   * errs on the safe side and would cut requests long before a summary is due.
   */
  readonly tokens: number;
};

/** Returns the same messages if they fit, else the summary and the newest messages, starting with a person's. */
export function fitContext(
  messages: readonly AgentMessage[],
  { window, tokens }: FitTerms,
): readonly AgentMessage[] {
  if (tokens <= window) return messages;
  const summary = messages.slice(0, messages[0]?.isSummary ? 1 : 0);
  let left = window - estimateTokens(summary);
  let start = messages.length;
  while (start > summary.length) {
    const message = messages[start - 1];
    left -= message ? messageTokens(message) : 0;
    if (left < 0) break;
    start -= 1;
  }
  if (start === summary.length) return messages;
  const first = messages.findIndex((message, index) => index >= start && message.role === 'user');
  // Not even the newest turn fits: it is sent in full, and the provider decides.
  const from = first === -1 ? messages.findLastIndex((message) => message.role === 'user') : first;
  if (from <= summary.length) return messages;
  return [...summary, leftOut(from - summary.length, messages[from]), ...messages.slice(from)];
}

function leftOut(count: number, next: AgentMessage | undefined): AgentMessage {
  const text = `${count} earlier messages of this conversation don't fit here; sessions_history shows them.`;
  return {
    id: transcriptId('left-out'),
    role: 'system',
    parts: [{ type: 'text', data: { text } }],
    createdAt: next?.createdAt ?? 0,
  };
}

/**
 * Shortens old tool results, in the request only. The point before which results count as old moves in steps, so the
 * beginning of the request stays the same for many turns and the provider can cache it.
 */
/** The newest part of the context, which is kept in full, tokens. */
const whole = 40_000;
/** How far the point moves in one step, tokens. */
const step = 25_000;
/** The length to which an old result is shortened, UTF-16 units. */
const leftUnits = 500;

/** Shortens old results; returns the same messages while nothing is old enough. */
export function pruneResults(messages: readonly AgentMessage[]): readonly AgentMessage[] {
  const sizes = messages.map(messageTokens);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const oldUpTo = Math.floor((total - whole) / step) * step;
  if (oldUpTo <= 0) return messages;
  let sum = 0;
  return messages.map((message, index) => {
    sum += sizes[index] ?? 0;
    return message.role === 'tool' && sum <= oldUpTo ? shortened(message) : message;
  });
}

function shortened(message: AgentMessage): AgentMessage {
  // Images are only shown while the result is new.
  const parts = message.parts.filter(({ type }) => type === 'tool_result');
  return { ...message, parts: parts.map(shortenedPart) };
}

function shortenedPart(part: MessagePart): MessagePart {
  if (part.type !== 'tool_result' || part.data.content.length <= 2 * leftUnits) return part;
  const { content } = part.data;
  const note = `[an old result, shortened: the first ${leftUnits} of ${content.length} characters]`;
  return { type: 'tool_result', data: { ...part.data, content: `${content.slice(0, leftUnits)}\n${note}` } };
}
