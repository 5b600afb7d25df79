/**
 * Shortens old tool results, in the request only. The point before which results count as old moves in steps, so the
 * beginning of the request stays the same for many turns and the provider can cache it.
 */
import type { AgentMessage, MessagePart } from '#contracts/message.ts';
import { messageTokens } from './context-size.ts';

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
