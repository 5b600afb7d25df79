import { neverLeft } from '#channel-kit/network-fault.ts';
import type { RetryAdvice } from '#contracts/errors.ts';
import type { ModelFailure } from '#contracts/model.ts';
import { limitExceededIn } from './bounded-answer.ts';

/** A failure that a platform or the connection to it reported. */
export type ApiFault = {
  readonly failure: ModelFailure;
  /** Another API key may succeed at once: 401, billing, quota. */
  readonly isAboutKey: boolean;
};

/** The failure of a call whose signal aborted. */
export const aborted: ModelFailure = { kind: 'aborted', detail: 'aborted' };

/** The failure of a call whose signal aborted before it left. */
export const neverSent: ModelFailure = { ...aborted, isFree: true };

/** Words of servers that turn a key away with a status that says nothing of keys: Gemini and xAI. */
const aboutKey = /\bapi key (?:not valid|not found|expired|was reported)|incorrect api key/i;

/** Whether a refusal concerns the key or its account: another key may do. */
export function refusesKey(status: number | undefined, said: string): boolean {
  if (status === 401 || status === 402) return true;
  return (status === 400 || status === 403) && aboutKey.test(said);
}

/** The failure of a stream that ended too early. */
export const cutOff: ModelFailure = {
  kind: 'failed',
  detail: 'the stream ended before the answer did',
  retry: { kind: 'later' },
};

/** The failure of a connection that was refused or lost before there was an answer. */
export function lostConnection(error: unknown): ApiFault {
  const failure: ModelFailure = {
    kind: 'overloaded',
    detail: `no connection: ${causeOf(error)}`,
    retry: { kind: 'later' },
    ...(neverLeft(error) && { isFree: true }),
  };
  return { failure, isAboutKey: false };
}

/** The failure of an answer that is beyond the limits; undefined for any other error. */
export function oversizedIn(error: unknown): ModelFailure | undefined {
  const detail = limitExceededIn(error);
  return detail === undefined ? undefined : { kind: 'oversized', detail };
}

/** The failure of a stream that broke. The error's name only: its message may quote what was in the stream. */
export function brokenStream(error: unknown): ModelFailure {
  const name = error instanceof Error ? error.name : 'unknown error';
  return { kind: 'failed', detail: `the stream broke: ${name}, ${causeOf(error)}`, retry: { kind: 'later' } };
}

/** The failure of making a request: the SDKs wrap everything that the network does. An error may quote the `keys`. */
export function unbuilt(error: unknown, keys: readonly string[]): ModelFailure {
  const what = error instanceof Error ? `${error.name}: ${wordsOf(error.message, keys)}` : 'unknown error';
  return { kind: 'unsendable', detail: `the request could not be made: ${what}`, isLocal: true };
}

/** `retry-after` in seconds or as a date; nothing when the platform does not say, or nothing that makes sense. */
export function retryAfter(headers: Headers | undefined): Extract<RetryAdvice, { kind: 'later' }> {
  const value = headers?.get('retry-after');
  if (value === null || value === undefined || value === '') return { kind: 'later' };
  const seconds = Number(value);
  // The answer's own clock, so that a wrong clock here does not matter.
  const sentAt = Date.parse(headers?.get('date') ?? '');
  const afterMs = Number.isNaN(seconds) ? Date.parse(value) - sentAt : seconds * 1000;
  return afterMs >= 0 ? { kind: 'later', afterMs: Math.min(afterMs, longestAskedMs) } : { kind: 'later' };
}

/** Callers wait less: this only keeps the number finite. */
const longestAskedMs = 86_400_000;

/** The platform's words, cut short and without the `keys` that they may repeat. */
export function wordsOf(said: string, keys: readonly string[]): string {
  const clean = keys.reduce((text, key) => (key === '' ? text : text.replaceAll(key, '[secret]')), said);
  return clean.slice(0, 200);
}

/** A system code such as ECONNREFUSED, which a person can look up. */
function causeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') return at.code;
  }
  return 'no further cause';
}
