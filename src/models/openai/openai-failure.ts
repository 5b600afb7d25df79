/**
 * Classifies an error of a Chat Completions server, by status, code and type. Servers that copy the API keep its
 * statuses, but not all of its codes: a prompt that is too long is known by its words too.
 */
import type { APIError } from 'openai';
import type { ModelFailure } from '#contracts/model.ts';
import { type ApiFault, retryAfter, wordsOf } from '../api-fault.ts';

const keyCodes = [
  'insufficient_quota',
  'billing_hard_limit_reached',
  'billing_not_active',
  'account_deactivated',
  'invalid_api_key',
];

const tooLong =
  /maximum context length|context (?:length|window|size)|prompt is too long|too many tokens|exceeds the available context|input token count (?:\(\d+\) )?exceeds/i;

/** `keys` may be repeated by the platform's words and are taken out; `sources`: see OpenAiRequest. */
export function faultOf(
  error: APIError,
  { keys, sources }: { readonly keys: readonly string[]; readonly sources: readonly number[] },
): ApiFault {
  const { status, code, type } = error;
  const said = saidBy(error);
  const detail = [statusOf(error), code ?? type, wordsOf(said, keys)].filter(Boolean).join(' ');
  const failed = (failure: Omit<ModelFailure, 'detail'>, isAboutKey = false): ApiFault => ({
    // Without a status it came inside a stream, whose tokens so far are counted.
    failure: { ...failure, detail, ...(status !== undefined && { isFree: true }) },
    isAboutKey,
  });
  if (isTooLong(error, said)) return failed({ kind: 'overflow' });
  if (isAboutKey(error)) return failed({ kind: 'unauthorised' }, true);
  if (code === 'content_policy_violation' || code === 'content_filter') return failed({ kind: 'refused' });
  if (status === 403) return failed({ kind: 'unauthorised' });
  if (isOverloaded(error)) {
    const retry = retryAfter(error.headers);
    const isOwnLimit = statusOf(error) === 429 && retry.afterMs !== undefined;
    return failed({ kind: 'overloaded', retry, ...(isOwnLimit && { isOwnLimit }) });
  }
  const unsendable = unsendableIn(error, sources);
  return failed(unsendable ?? { kind: 'failed' });
}

/** An error inside a stream has no status of its own; some servers put one into its code. */
function statusOf({ status, code }: APIError): number | undefined {
  const inCode = Number(code);
  return status ?? (inCode >= 400 && inCode < 600 ? inCode : undefined);
}

function isTooLong(error: APIError, said: string): boolean {
  if (error.code === 'context_length_exceeded' || error.type === 'exceed_context_size_error') return true;
  const status = statusOf(error);
  return status === 413 || ((status === 400 || status === undefined) && tooLong.test(said));
}

function isAboutKey(error: APIError): boolean {
  const status = statusOf(error);
  if (status === 401 || status === 402) return true;
  return keyCodes.includes(error.code ?? '') || error.type === 'insufficient_quota';
}

/** Inside a stream an error that says nothing else was the server's own. */
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
  // Gemini puts its refusal into a list.
  const said: { message?: unknown } | undefined = Array.isArray(body) ? body[0]?.error : body;
  return typeof said?.message === 'string' ? said.message : message;
}

/** The parameter that the server refused as one it does not know, or with this value. */
export function unsupportedIn({ status, code, param, message }: APIError): string | undefined {
  if (status !== 400 && status !== 422) return undefined;
  const names = ['max_tokens', 'max_completion_tokens', 'reasoning_effort', 'stream_options'];
  if (param && names.includes(param) && code !== 'context_length_exceeded') return param;
  const isUnsupported = /unsupported|not supported|unrecognized|unknown|extra/i.test(message);
  return isUnsupported ? names.find((name) => message.includes(name)) : undefined;
}
