/** Messages as later requests show them after a rejection: placeholders name the omitted content. */
import { type AgentMessage, isImage, type MessagePart, toolCallsOf } from '#contracts/message.ts';

const notKept = {
  call: 'this tool call could not be kept: the model accepted no request with it',
  image: '[an image was left out: the model accepted no request with it]',
  text: '[a message was left out: the model accepted no request with it]',
} as const;

/**
 * Replaces marked content; returns the same messages if none is marked. A result is omitted along with its marked call.
 */
export function withStandIns(messages: readonly AgentMessage[]): readonly AgentMessage[] {
  if (messages.every(({ unsendable }) => unsendable === undefined)) return messages;
  const left = new Set<string>();
  return messages.map((message) => {
    if (message.role === 'tool') return withoutResults(message, left);
    for (const { id } of toolCallsOf(message.parts)) {
      if (message.unsendable === undefined || message.unsendable === 'thinking') left.delete(id);
      else left.add(id);
    }
    const { unsendable } = message;
    if (unsendable === undefined) return message;
    const parts = message.parts.flatMap((part) => standInFor(part, unsendable));
    return { ...message, parts };
  });
}

function standInFor(
  part: MessagePart,
  unsendable: NonNullable<AgentMessage['unsendable']>,
): readonly MessagePart[] {
  if (part.type === 'reasoning') return [];
  if (part.type === 'tool_call') {
    const { signature: _, ...call } = part.data;
    return [{ type: 'tool_call', data: unsendable === 'thinking' ? call : { ...call, input: '{}' } }];
  }
  if (unsendable === 'thinking') return [part];
  if (isImage(part)) return [says(notKept.image)];
  return part.type === 'text' && unsendable === 'text' ? [says(notKept.text)] : [part];
}

function withoutResults(message: AgentMessage, left: ReadonlySet<string>): AgentMessage {
  const isLeft = message.parts.some(
    (part) => part.type === 'tool_result' && left.has(part.data.tool_call_id),
  );
  if (!isLeft) return message;
  const parts = message.parts.flatMap((part): readonly MessagePart[] =>
    part.type === 'tool_result'
      ? [{ type: 'tool_result', data: { ...part.data, content: notKept.call, is_error: true } }]
      : [],
  );
  return { ...message, parts };
}

function says(text: string): MessagePart {
  return { type: 'text', data: { text } };
}
