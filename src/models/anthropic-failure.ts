/**
 * Classifies an API error, for the loop (a ModelFailure) and for the keys (whether another key could work).
 * Decides by status, error type and error code; by message text only for the three cases that the platform signals
 * in no other way: a prompt that is too long, a credit balance that is too low, and a message of the conversation
 * that it doesn't accept.
 */
import type { APIError } from '@anthropic-ai/sdk';
import type { ModelFailure } from '#contracts/model.ts';
import { type ApiFault, retryAfter, wordsOf } from './api-fault.ts';

const QUOTA_CODES = [
  'contract_spend_limit_reached',
  'enforced_spend_limit_reached',
  'linked_organization_spend_limit_reached',
  'linked_organization_billing_unavailable',
  'organization_on_hold',
];

/**
 * Classifies an error with which the platform answered, before or inside the stream. Its text is stored and shown, so
 * any `keys` that it repeats are removed.
 */
export function faultOf(error: APIError, keys: readonly string[]): ApiFault {
  const fault = classify(error, detailOf(error, keys));
  // Without a status it is an `error` event of a stream, whose tokens so far are billed.
  return error.status === undefined ? fault : { ...fault, failure: { ...fault.failure, isFree: true } };
}

function classify(error: APIError, detail: string): ApiFault {
  if (isTooLong(error)) return { failure: { kind: 'overflow', detail }, isAboutKey: false };
  const isAboutKey = concernsKey(error);
  if (isAboutKey) return { failure: { kind: 'unauthorised', detail }, isAboutKey };
  if (error.status === 403)
    return { failure: { kind: 'unauthorised', detail, isAboutModel: true }, isAboutKey };
  if (isOverloaded(error)) {
    const retry = retryAfter(error.headers);
    const isOwnLimit = error.status === 429 && retry.afterMs !== undefined;
    return { failure: { kind: 'overloaded', detail, retry, ...(isOwnLimit && { isOwnLimit }) }, isAboutKey };
  }
  const unsendable = unsendableIn(error);
  if (unsendable !== undefined) return { failure: { ...unsendable, detail }, isAboutKey };
  return { failure: { kind: 'failed', detail }, isAboutKey };
}

function isTooLong(error: APIError): boolean {
  if (error.status === 413) return true;
  return error.status === 400 && /prompt is too long|exceed context limit/i.test(error.apiMessage ?? '');
}

/**
 * Matches errors about the conversation itself; if the platform names the message, it does so by index. The last
 * alternative comes from compatible servers whose model can't see images.
 */
const aboutMessages =
  /^(?:messages\b|could not process image|the request body is not valid json)|\bsupport images?\b/i;

function unsendableIn({ status, apiMessage }: APIError): Omit<ModelFailure, 'detail'> | undefined {
  const said = apiMessage ?? '';
  if (status !== 400 || !aboutMessages.test(said)) return undefined;
  const index = /^messages\.(\d{1,6})\b/i.exec(said)?.[1];
  return index === undefined ? { kind: 'unsendable' } : { kind: 'unsendable', messageIndex: Number(index) };
}

function concernsKey(error: APIError): boolean {
  if (error.status === 401 || error.status === 402) return true;
  if (error.type === 'authentication_error' || error.type === 'billing_error') return true;
  if (QUOTA_CODES.includes(error.errorCode ?? '')) return true;
  return error.status === 400 && /credit balance is too low/i.test(error.apiMessage ?? '');
}

const PASSING = ['overloaded_error', 'rate_limit_error', 'api_error', 'timeout_error'];

function isOverloaded(error: APIError): boolean {
  const { status } = error;
  if (status === undefined) return PASSING.includes(error.type ?? '');
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

/** Returns the status, the type and the platform's text, shortened. */
function detailOf(error: APIError, keys: readonly string[]): string {
  const words = wordsOf(error.apiMessage ?? 'no message', keys);
  return [error.status, error.errorCode ?? error.type, words].filter(Boolean).join(' ');
}
