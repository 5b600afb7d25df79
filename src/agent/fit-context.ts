/**
 * Keeps a request inside the model's window until the conversation is compacted: the oldest messages
 * are left out of the request, never out of the store, and a call is never parted from its results.
 */
import { transcriptId } from '#contracts/ids.ts';
import type { AgentMessage } from '#contracts/message.ts';
import { messageTokens } from './context-size.ts';

/** The newest messages that fit into `maxTokens`, beginning with a person's; all of them when they fit. */
export function fitContext(messages: readonly AgentMessage[], maxTokens: number): readonly AgentMessage[] {
  let left = maxTokens;
  let start = messages.length;
  while (start > 0) {
    const message = messages[start - 1];
    left -= message ? messageTokens(message) : 0;
    if (left < 0) break;
    start -= 1;
  }
  if (start === 0) return messages;
  const first = messages.findIndex((message, index) => index >= start && message.role === 'user');
  // Not even the newest turn fits: it is sent whole, and the provider says what it thinks of it.
  const from = first === -1 ? messages.findLastIndex((message) => message.role === 'user') : first;
  if (from <= 0) return messages;
  return [leftOut(from, messages[from]), ...messages.slice(from)];
}

function leftOut(count: number, next: AgentMessage | undefined): AgentMessage {
  const text = `${count} earlier messages of this conversation do not fit here; sessions_history shows them.`;
  return {
    id: transcriptId('left-out'),
    role: 'system',
    parts: [{ type: 'text', data: { text } }],
    createdAt: next?.createdAt ?? 0,
  };
}
