/**
 * Keeps a request inside the model's window until the conversation is compacted: the oldest messages
 * are left out of the request, never out of the store, and a call is never parted from its results.
 */
import { transcriptId } from '#contracts/ids.ts';
import type { AgentMessage, MessagePart } from '#contracts/message.ts';

/** UTF-16 units per token, on the low side for the languages people write in, so that it errs to the safe side. */
const unitsPerToken = 3;
/** Cost of an image, tokens (Anthropic: at most about 1,600). */
const imageTokens = 1_600;

/** The newest messages that fit into `maxTokens`, beginning with a person's; all of them when they fit. */
export function fitContext(messages: readonly AgentMessage[], maxTokens: number): readonly AgentMessage[] {
  let left = maxTokens;
  let start = messages.length;
  while (start > 0) {
    left -= tokensOf(messages[start - 1]);
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

function tokensOf(message: AgentMessage | undefined): number {
  let tokens = 4;
  for (const part of message?.parts ?? []) {
    const isImage = part.type === 'binary' || part.type === 'image_url';
    tokens += isImage ? imageTokens : Math.ceil(unitsOf(part) / unitsPerToken);
  }
  return tokens;
}

/** The length of what it says; writing it out to measure it took as long as reading the whole history. */
function unitsOf({ data }: MessagePart): number {
  let units = 0;
  for (const value of Object.values(data)) units += typeof value === 'string' ? value.length : 1;
  return units;
}
