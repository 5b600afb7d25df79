/**
 * The rules of a conversation: who speaks when, every tool use answered immediately, thinking unchanged. Stricter than
 * the platform in one respect: the platform joins adjacent messages of one role, while this server refuses them,
 * because Parley promises alternation.
 */
import type { ModelRules } from './model-rules.ts';
import { asArray, asObject, asText, checkFields, isObject, type Json, Refusal } from './refusal.ts';
import { isGenuine, isInPlace } from './signature.ts';
import { blocksOf, type WireBlock, type WireBody, type WireMessage } from './wire.ts';

export function checkConversation(body: Json, rules: ModelRules): void {
  const messages = asArray(body.messages, 'messages');
  if (messages.length === 0) throw new Refusal('messages: at least one message is required');
  for (const [index, raw] of messages.entries()) checkMessage(raw, `messages.${index}`);
  const checked = messages as unknown as readonly WireMessage[];
  checkTurns(checked);
  checkToolPairs(checked);
  checkThinkingBlocks(body as unknown as WireBody, rules);
}

function checkMessage(raw: unknown, path: string): void {
  const message = asObject(raw, path);
  checkFields(message, path, { required: ['role', 'content'] });
  if (message.role !== 'user' && message.role !== 'assistant') {
    throw new Refusal(`${path}.role: Input should be 'user' or 'assistant'`);
  }
  if (typeof message.content === 'string') {
    if (message.content.trim() === '') throw new Refusal(`${path}: all messages must have non-empty content`);
    return;
  }
  const blocks = asArray(message.content, `${path}.content`);
  if (blocks.length === 0) throw new Refusal(`${path}: all messages must have non-empty content`);
  for (const [index, block] of blocks.entries()) {
    checkBlock(asObject(block, `${path}.content.${index}`), message.role, `${path}.content.${index}`);
  }
}

const blockFields: Record<string, { required: string[]; optional?: string[] }> = {
  text: { required: ['type', 'text'], optional: ['cache_control'] },
  image: { required: ['type', 'source'], optional: ['cache_control'] },
  document: { required: ['type', 'source'], optional: ['cache_control'] },
  tool_result: { required: ['type', 'tool_use_id'], optional: ['content', 'is_error', 'cache_control'] },
  thinking: { required: ['type', 'thinking', 'signature'] },
  redacted_thinking: { required: ['type', 'data'] },
  tool_use: { required: ['type', 'id', 'name', 'input'], optional: ['cache_control'] },
};

const allowedBlocks = {
  user: ['text', 'image', 'document', 'tool_result'],
  assistant: ['text', 'thinking', 'redacted_thinking', 'tool_use'],
};

function checkBlock(block: Json, role: 'user' | 'assistant', path: string): void {
  const type = asText(block.type, `${path}.type`);
  const fields = blockFields[type];
  if (fields === undefined || !allowedBlocks[role].includes(type)) {
    throw new Refusal(`${path}: \`${type}\` blocks are not permitted in ${role} messages`);
  }
  checkFields(block, path, fields);
  if (type === 'text') checkText(block.text, path);
  if (type === 'image') checkImage(asObject(block.source, `${path}.source`), `${path}.source`);
  if (type === 'document') checkDocument(asObject(block.source, `${path}.source`), `${path}.source`);
  if (type === 'tool_result') checkToolResult(block, path);
  if (type === 'tool_use') checkToolUse(block, path);
}

function checkText(value: unknown, path: string): void {
  // The platform's white space is Python's, plus the separators and U+0085.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/^[\s\x1c-\x1f\x85]*$/.test(asText(value, `${path}.text`))) {
    throw new Refusal('messages: text content blocks must contain non-whitespace text');
  }
}

function checkImage(source: Json, path: string): void {
  if (source.type !== 'base64') throw new Refusal(`${path}.type: this server takes base64 images only`);
  checkFields(source, path, { required: ['type', 'media_type', 'data'] });
  if (!['image/jpeg', 'image/png', 'image/gif', 'image/webp'].includes(String(source.media_type))) {
    throw new Refusal(
      `${path}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'`,
    );
  }
  const data = asText(source.data, `${path}.data`);
  if (data.length > maxImageLength) {
    throw new Refusal(
      `${path}.base64: image exceeds 5 MB maximum: ${data.length} bytes > ${maxImageLength} bytes`,
    );
  }
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(data)) throw new Refusal(`${path}.data: Invalid base64 data`);
  const head = Buffer.from(data.slice(0, 16), 'base64').toString('latin1');
  const isThat = heads[String(source.media_type)]?.test(head);
  if (!isThat) throw new Refusal('Could not process image');
}

function checkDocument(source: Json, path: string): void {
  if (source.type !== 'base64') throw new Refusal(`${path}.type: this server takes base64 documents only`);
  checkFields(source, path, { required: ['type', 'media_type', 'data'] });
  if (source.media_type !== 'application/pdf')
    throw new Refusal(`${path}.media_type: Input should be 'application/pdf'`);
  const data = Buffer.from(asText(source.data, `${path}.data`), 'base64');
  if (!data.includes('%PDF-')) throw new Refusal('The PDF specified was not valid.');
}

/** The limit on the base64 text, as the platform counts it. */
const maxImageLength = 5 * 1024 * 1024;
const heads: Record<string, RegExp> = {
  'image/png': /^\x89PNG/,
  'image/jpeg': /^\xff\xd8\xff/,
  'image/gif': /^GIF8/,
  'image/webp': /^RIFF....WEBP/s,
};

function checkToolResult(block: Json, path: string): void {
  asText(block.tool_use_id, `${path}.tool_use_id`);
  if (block.content === undefined || typeof block.content === 'string') return;
  for (const [index, inner] of asArray(block.content, `${path}.content`).entries()) {
    const innerPath = `${path}.content.${index}`;
    const innerBlock = asObject(inner, innerPath);
    if (innerBlock.type !== 'text' && innerBlock.type !== 'image') {
      throw new Refusal(`${innerPath}: only text and image blocks are permitted in tool results`);
    }
    checkBlock(innerBlock, 'user', innerPath);
  }
}

function checkToolUse(block: Json, path: string): void {
  if (!/^[a-zA-Z0-9_-]+$/.test(asText(block.id, `${path}.id`))) {
    throw new Refusal(`${path}.id: String should match pattern '^[a-zA-Z0-9_-]+$'`);
  }
  asText(block.name, `${path}.name`);
  if (!isObject(block.input)) throw new Refusal(`${path}.input: Input should be a valid dictionary`);
}

function checkTurns(messages: readonly WireMessage[]): void {
  if (messages[0]?.role !== 'user') throw new Refusal('messages: first message must use the "user" role');
  for (const [index, message] of messages.entries()) {
    if (index > 0 && messages[index - 1]?.role === message.role) {
      throw new Refusal(
        `messages: roles must alternate between "user" and "assistant", but found multiple "${message.role}" roles in a row`,
      );
    }
  }
  if (messages.at(-1)?.role === 'assistant') {
    throw new Refusal(
      'This model does not support assistant message prefill. The conversation must end with a user message.',
    );
  }
}

function checkToolPairs(messages: readonly WireMessage[]): void {
  const seen = new Set<string>();
  for (const [index, message] of messages.entries()) {
    const asked = index > 0 ? toolUsesOf(messages[index - 1]) : [];
    const answers = blocksOf(message).filter((block) => block.type === 'tool_result');
    checkAnswers(message, answers, asked, `messages.${index}`);
    for (const id of toolUsesOf(message)) {
      if (seen.has(id)) throw new Refusal(`messages.${index}: \`tool_use\` ids must be unique`);
      seen.add(id);
    }
  }
}

function checkAnswers(
  message: WireMessage,
  answers: readonly WireBlock[],
  asked: readonly string[],
  path: string,
): void {
  const answered = new Set<string>();
  for (const answer of answers) {
    const id = answer.tool_use_id ?? '';
    if (!asked.includes(id)) {
      throw new Refusal(
        `${path}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      );
    }
    if (answered.has(id)) {
      throw new Refusal(
        `${path}: each tool_use must have a single result. Found multiple results with id: ${id}`,
      );
    }
    answered.add(id);
  }
  const missing = asked.filter((id) => !answered.has(id));
  if (missing.length > 0) {
    throw new Refusal(
      `${path}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}.`,
    );
  }
  const firstOther = blocksOf(message).findIndex((block) => block.type !== 'tool_result');
  if (answers.length > 0 && firstOther !== -1 && firstOther < answers.length) {
    throw new Refusal(`${path}: \`tool_result\` blocks must come first in the message`);
  }
}

function toolUsesOf(message: WireMessage | undefined): readonly string[] {
  if (message === undefined) return [];
  return blocksOf(message).flatMap((block) => (block.type === 'tool_use' ? [block.id ?? ''] : []));
}

function checkThinkingBlocks(body: WireBody, rules: ModelRules): void {
  const mayDrop = body.thinking?.block_binding?.prefix_mismatch_behavior === 'drop_block';
  for (const [index, message] of body.messages.entries()) {
    for (const [at, block] of blocksOf(message).entries()) {
      if (block.type !== 'thinking') continue;
      const path = `messages.${index}.content.${at}`;
      const signature = block.signature ?? '';
      if (!isGenuine(block.thinking ?? '', signature)) {
        throw new Refusal(`${path}: Invalid \`signature\` in \`thinking\` block`);
      }
      if (rules.bindsThinking && !mayDrop && !isInPlace(signature, body, body.messages.slice(0, index))) {
        throw new Refusal(
          `${path}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation.`,
        );
      }
    }
  }
  if (body.thinking?.type === 'enabled') checkOpenToolTurn(body.messages);
}

/** Checks that, with a thinking budget, the turn whose tools were just answered begins with its thinking. */
function checkOpenToolTurn(messages: readonly WireMessage[]): void {
  const index = messages.length - 2;
  const asking = messages[index];
  if (toolUsesOf(asking).length === 0 || asking === undefined) return;
  const first = blocksOf(asking)[0]?.type;
  if (first !== 'thinking' && first !== 'redacted_thinking') {
    throw new Refusal(
      `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first}\`.`,
    );
  }
}
