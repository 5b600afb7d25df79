// What a strict provider accepts as history. Written from Anthropic's rules, independent of the converter.

import type { LlmMessage } from '#contracts/model.ts';

export function llmErrors(messages: readonly LlmMessage[]): readonly string[] {
  const errors: string[] = [];
  const ids = new Set<string>();
  if (messages[0] !== undefined && messages[0].role !== 'user')
    errors.push('the first message is no user message');
  for (const [index, message] of messages.entries()) {
    const before = messages[index - 1];
    if (before?.role === message.role) errors.push(`two ${message.role} messages in a row`);
    if (message.content.length === 0) errors.push('a message without content');
    for (const block of message.content) {
      if (block.type === 'text' && block.text.trim() === '') errors.push('an empty text');
      if (block.type === 'text' && !isClean(block.text)) errors.push('a text that is not clean');
      if (block.type === 'tool_result' && block.content === '') errors.push('an empty result');
    }
    if (message.role === 'user') errors.push(...resultErrors(message, before));
    else errors.push(...answerErrors(message, messages[index + 1], ids));
  }
  return errors;
}

type UserMessage = Extract<LlmMessage, { readonly role: 'user' }>;
type AssistantMessage = Extract<LlmMessage, { readonly role: 'assistant' }>;

function resultErrors({ content }: UserMessage, before: LlmMessage | undefined): readonly string[] {
  const errors: string[] = [];
  const asked = before?.role === 'assistant' ? usesOf(before) : [];
  const answered = content.flatMap((block) => (block.type === 'tool_result' ? [block.toolCallId] : []));
  const firstOther = content.findIndex(({ type }) => type !== 'tool_result');
  if (firstOther !== -1 && content.slice(firstOther).some(({ type }) => type === 'tool_result')) {
    errors.push('a tool result behind other content');
  }
  if (answered.join() !== asked.join()) errors.push(`results ${answered.join()} for calls ${asked.join()}`);
  return errors;
}

function answerErrors(
  message: AssistantMessage,
  next: LlmMessage | undefined,
  ids: Set<string>,
): readonly string[] {
  const errors: string[] = [];
  if (message.content.at(-1)?.type === 'thinking') errors.push('an answer that ends with thinking');
  const uses = usesOf(message);
  if (uses.length > 0 && next === undefined) errors.push('calls without an answer');
  for (const id of uses) {
    if (ids.has(id)) errors.push(`the call id ${id} twice`);
    if (!/^[A-Za-z0-9_-]+$/.test(id)) errors.push(`the call id ${JSON.stringify(id)}`);
    ids.add(id);
  }
  for (const block of message.content) {
    if (block.type !== 'tool_use') continue;
    if (!/^[A-Za-z0-9_-]{1,128}$/.test(block.name))
      errors.push(`the tool name ${JSON.stringify(block.name)}`);
    const { input } = block;
    if (typeof input !== 'object' || input === null || Array.isArray(input))
      errors.push('input that is no object');
  }
  return errors;
}

function usesOf({ content }: AssistantMessage): readonly string[] {
  return content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []));
}

function isClean(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000');
}
