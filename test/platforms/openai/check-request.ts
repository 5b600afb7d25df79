/** The rules of Chat Completions that a conversation can break: roles, content, every call answered immediately. */
import { asArray, asObject, asText, isObject, type Json } from '../anthropic/refusal.ts';
import { signatureOf } from './chunks.ts';

/** A request that the server refuses; `param` names the parameter at fault. */
export class BadRequest extends Error {
  readonly status: number;
  readonly code: string | null;
  readonly param: string | null;

  constructor(message: string, more: { status?: number; code?: string; param?: string } = {}) {
    super(message);
    this.status = more.status ?? 400;
    this.code = more.code ?? null;
    this.param = more.param ?? null;
  }
}

const known = new Set([
  ...['model', 'messages', 'tools', 'stream', 'stream_options', 'max_tokens', 'max_completion_tokens'],
  'reasoning_effort',
]);

export function checkRequest(raw: unknown, refusedParams: readonly string[]): Json {
  const body = asObject(raw, 'body');
  for (const name of Object.keys(body)) {
    if (!known.has(name) || refusedParams.includes(name)) {
      throw new BadRequest(`Unsupported parameter: '${name}'`, {
        code: 'unsupported_parameter',
        param: name,
      });
    }
  }
  asText(body.model, 'model');
  const limit = body.max_completion_tokens ?? body.max_tokens;
  const takesLimit = !['max_tokens', 'max_completion_tokens'].every((name) => refusedParams.includes(name));
  if (takesLimit && !(typeof limit === 'number' && limit >= 1))
    throw new BadRequest('max_tokens is needed here');
  checkMessages(asArray(body.messages, 'messages'));
  for (const tool of Array.isArray(body.tools) ? body.tools : []) {
    const named = asObject(asObject(tool, 'tools').function, 'tools.function');
    if (!/^[\w-]{1,64}$/.test(asText(named.name, 'tools.function.name')))
      throw new BadRequest('bad tool name');
  }
  return body;
}

function checkMessages(messages: readonly unknown[]): void {
  let open = new Set<string>();
  for (const [index, raw] of messages.entries()) {
    const at = (what: string) => new BadRequest(what, { param: `messages[${index}]` });
    const message = asObject(raw, `messages[${index}]`);
    if (message.role === 'tool') {
      if (!open.delete(String(message.tool_call_id))) throw at('a tool message answers no open call');
      if (typeof message.content !== 'string') throw at('a tool message needs text');
      continue;
    }
    if (open.size > 0) throw at(`calls without an answer: ${[...open].join()}`);
    if (message.role === 'assistant') open = checkAssistant(message, at);
    else if (message.role === 'system' ? index !== 0 : message.role !== 'user') throw at('bad role');
    else checkContent(message.content, at);
  }
  if (open.size > 0) throw new BadRequest('the last calls have no answers', { param: 'messages' });
}

function checkAssistant(message: Json, at: (what: string) => BadRequest): Set<string> {
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls : [];
  if (calls.length === 0 && typeof message.content !== 'string') throw at('empty assistant message');
  const ids = new Set<string>();
  for (const raw of calls) {
    const call = asObject(raw, 'tool_calls');
    const called = asObject(call.function, 'tool_calls.function');
    if (ids.has(String(call.id))) throw at('two calls of one id');
    ids.add(asText(call.id, 'tool_calls.id'));
    if (String(call.id).length > 40) throw at("'tool_calls.id': string too long. Expected at most 40");
    if (!/^[\w-]{1,64}$/.test(asText(called.name, 'function.name'))) throw at('bad name of a called tool');
    if (!isObject(JSON.parse(asText(called.arguments, 'arguments')))) throw at('arguments are no object');
  }
  return ids;
}

/**
 * Applies Gemini's rule: in the current turn, the first call of each answer needs the signature written with it, or
 * Gemini's placeholder for other models' calls.
 */
export function checkSignatures(body: Json): void {
  const messages = asArray(body.messages, 'messages').map((each) => asObject(each, 'messages'));
  const turn = messages.slice(messages.findLastIndex(({ role }) => role === 'user'));
  for (const { tool_calls: calls } of turn) {
    if (!Array.isArray(calls) || calls.length === 0) continue;
    const first = asObject(calls[0], 'tool_calls');
    const { google } = asObject(first.extra_content ?? {}, 'extra_content');
    const signature = isObject(google) ? google.thought_signature : undefined;
    const signed = [signatureOf(String(first.id)).thought_signature, 'skip_thought_signature_validator'];
    if (!signed.includes(String(signature)))
      throw new BadRequest('Function call is missing a thought_signature in functionCall parts.');
  }
}

function checkContent(content: unknown, at: (what: string) => BadRequest): void {
  if (typeof content === 'string') {
    if (content.trim() === '') throw at('empty content');
    return;
  }
  const parts = Array.isArray(content) ? content : [];
  if (parts.length === 0) throw at('no content');
  for (const part of parts) {
    const url = isObject(part) && isObject(part.image_url) ? part.image_url.url : 'data:image/png;base64,';
    if (!String(url).startsWith('data:image/')) throw at('images are data addresses here');
    if (isObject(part) && part.type === 'file') checkFile(part.file, at);
  }
}

/** Without a name, OpenAI refuses the data. */
function checkFile(raw: unknown, at: (what: string) => BadRequest): void {
  const file = isObject(raw) ? raw : {};
  if (!/^[^/]+\.pdf$/.test(String(file.filename))) throw at('a file needs a name');
  if (!/^data:application\/pdf;base64,[\w+/]+=*$/.test(String(file.file_data)))
    throw at('files are data addresses here');
}
