/**
 * Classifies an error of a Chat Completions server by status, code and type. Servers that copy the API keep its
 * statuses, but not all of its codes, so a prompt that is too long, an image for a model that can't see any and a wrong
 * key are also recognised by the error's text.
 */
import type { APIError } from 'openai';
import type { ModelFailure } from '#contracts/model.ts';
import { type ApiFault, refusesKey, retryAfter, wordsOf } from '../api-fault.ts';
import { IMAGES, type OpenAiRequest, TOOLS, UNREASONED, UNSIGNED_CALLS } from './openai-request.ts';

const keyCodes = [
  'insufficient_quota',
  'billing_hard_limit_reached',
  'billing_not_active',
  'account_deactivated',
  'invalid_api_key',
];

const tooLong =
  /maximum (?:context|prompt) length|context (?:length|window|size)|(?:prompt|input) is too long|too many tokens|exceeds the available context|exceeded model token limit|input token count (?:\(\d+\) )?exceeds/i;

/** Classifies an error. Any `keys` that the platform's text repeats are removed; `made`: the request that failed. */
export function faultOf(error: APIError, keys: readonly string[], made?: OpenAiRequest): ApiFault {
  const { status, code, type } = error;
  const said = saidBy(error);
  const detail = [statusOf(error), code ?? type, wordsOf(said, keys)].filter(Boolean).join(' ');
  const failed = (failure: Omit<ModelFailure, 'detail'>, isAboutKey = false): ApiFault => ({
    // Without a status it came inside a stream, whose tokens so far are billed.
    failure: { ...failure, detail, ...(status !== undefined && { isFree: true }) },
    isAboutKey,
  });
  if (isTooLong(error, said)) return failed({ kind: 'overflow' });
  if (isAboutKey(error, said)) return failed({ kind: 'unauthorised' }, true);
  if (code === 'content_policy_violation' || code === 'content_filter') return failed({ kind: 'refused' });
  if (status === 403) return failed({ kind: 'unauthorised', isAboutModel: true });
  if (isOverloaded(error)) {
    const retry = retryAfter(error.headers);
    const isOwnLimit = statusOf(error) === 429 && retry.afterMs !== undefined;
    return failed({ kind: 'overloaded', retry, ...(isOwnLimit && { isOwnLimit }) });
  }
  const unsendable = unsendableIn(error, made?.sources ?? []);
  return failed(unsendable ?? { kind: 'failed' });
}

/** Returns the status. An error inside a stream has none of its own; some servers put one in its code. */
function statusOf({ status, code }: APIError): number | undefined {
  const inCode = Number(code);
  return status ?? (inCode >= 400 && inCode < 600 ? inCode : undefined);
}

function isTooLong(error: APIError, said: string): boolean {
  if (error.code === 'context_length_exceeded' || error.type === 'exceed_context_size_error') return true;
  const status = statusOf(error);
  // Longer than a minute's entire allowance, so waiting doesn't help.
  if (status === 429) return /request too large/i.test(said);
  return status === 413 || ((status === 400 || status === undefined) && tooLong.test(said));
}

function isAboutKey(error: APIError, said: string): boolean {
  if (refusesKey(statusOf(error), said)) return true;
  return keyCodes.includes(error.code ?? '') || error.type === 'insufficient_quota';
}

/** Says whether the server is to blame. An error inside a stream is its own unless it says otherwise. */
function isOverloaded(error: APIError): boolean {
  const status = statusOf(error);
  if (status === undefined) return true;
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

const imageCodes = ['invalid_image', 'invalid_image_format', 'image_parse_error', 'invalid_base64_image'];

function unsendableIn(
  { status, code, param }: APIError,
  sources: readonly number[],
): Omit<ModelFailure, 'detail'> | undefined {
  if (status !== 400 && status !== 422) return undefined;
  if (!param?.startsWith('messages') && !imageCodes.includes(code ?? '')) return undefined;
  const index = /^messages[.[](\d{1,6})/.exec(param ?? '')?.[1];
  const source = index === undefined ? undefined : sources[Number(index)];
  return source === undefined || source < 0
    ? { kind: 'unsendable' }
    : { kind: 'unsendable', messageIndex: source };
}

function saidBy({ error: body, message }: APIError): string {
  if (typeof body === 'string') return body;
  // Gemini wraps its error in a list.
  const said: { message?: unknown } | undefined = Array.isArray(body) ? body[0]?.error : body;
  return typeof said?.message === 'string' ? said.message : message;
}

/** Matches errors of servers whose model accepts only text; some want a plain string instead of a list of parts. */
const aboutImages = new RegExp(
  [
    '\\bimage input\\b', // Ollama, llama.cpp, OpenRouter
    'content part type\\b.{0,40}image_url', // llama.cpp
    'vision model not found', // Ollama
    '\\bsupport images?\\b', // LM Studio
    'image_url is only supported', // OpenAI
    'not a multimodal|at most 0 image', // vLLM
    'unknown variant .?image_url|sequence, expected a string|ChatCompletionRequestContent', // DeepSeek
    'content\\b.{0,20}must be a string', // Groq
  ].join('|'),
  'i',
);

const toolWords = '(?:tools?|tool[ -](?:use|calls?|calling)|function[ -]calling)[\'`"]?';
/** Matches errors of servers whose model doesn't support tools, or that aren't configured for its tool calls. */
const aboutTools = new RegExp(
  [
    `\\bsupport ${toolWords}(?!_)`, // Ollama, OpenRouter, Bedrock, DeepSeek
    `${toolWords} (?:is|are) not (?:supported|enabled|available)`, // OpenAI, Groq, Gemini, Mistral
    'tool choice requires --enable-auto-tool-choice', // vLLM
    'tools param requires|unsupported param: tools|use tools with stream', // llama.cpp
  ].join('|'),
  'i',
);

/** Names what the server doesn't accept, see `UnsupportedNames`: for example a parameter or one of its values. */
export function unsupportedIn(error: APIError, { hasImages, hasTools }: OpenAiRequest): string | undefined {
  const { status, code, param, message } = error;
  const said = saidBy(error);
  if (hasImages && status !== undefined && status !== 429 && aboutImages.test(said)) return IMAGES;
  if (hasTools && status !== undefined && status !== 429 && aboutTools.test(said)) return TOOLS;
  if (status !== 400 && status !== 422) return undefined;
  if (/missing a .?thought_signature/i.test(said)) return UNSIGNED_CALLS;
  if (/reasoning_content.{0,40}(?:must be passed back|is missing)|missing .?reasoning_content/i.test(said))
    return UNREASONED;
  const names = ['max_tokens', 'max_completion_tokens', 'reasoning_effort', 'stream_options'];
  if (param && names.includes(param) && code !== 'context_length_exceeded') return param;
  const isUnsupported = /unsupported|not supported|unrecognized|unknown|extra/i.test(message);
  return isUnsupported ? names.find((name) => message.includes(name)) : undefined;
}
