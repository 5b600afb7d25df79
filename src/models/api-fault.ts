import { neverLeft } from '#channel-kit/network-fault.ts';
import type { RetryAdvice } from '#contracts/errors.ts';
import type { ModelFailure } from '#contracts/model.ts';
import { limitExceededIn } from './bounded-answer.ts';

/** A failure that a platform or the connection to it reported. */
export type ApiFault = {
  readonly failure: ModelFailure;
  /** Another API key may succeed immediately: 401, billing, quota. */
  readonly isAboutKey: boolean;
};

/** The failure of a call whose signal aborted. */
export const aborted: ModelFailure = { kind: 'aborted', detail: 'aborted' };

/** The failure of a call whose signal aborted before it was sent. */
export const neverSent: ModelFailure = { ...aborted, isFree: true };

/** Matches errors of servers that reject a key with a generic status: Gemini and xAI. */
const aboutKey = /\bapi key (?:not valid|not found|expired|was reported)|incorrect api key/i;

/** Says whether a refusal concerns the key or its account, so that another key may work. */
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

/** Returns the failure of a connection that was refused, or lost before an answer. */
export function lostConnection(error: unknown): ApiFault {
  const failure: ModelFailure = {
    kind: 'overloaded',
    detail: `no connection: ${causeOf(error)}`,
    retry: { kind: 'later' },
    ...(neverLeft(error) && { isFree: true }),
  };
  return { failure, isAboutKey: false };
}

/** Returns the failure of an answer that exceeds the limits; undefined for any other error. */
export function oversizedIn(error: unknown): ModelFailure | undefined {
  const detail = limitExceededIn(error);
  return detail === undefined ? undefined : { kind: 'oversized', detail };
}

/** Returns the failure of a stream that broke. Contains only the error's name: its message may quote the stream. */
export function brokenStream(error: unknown): ModelFailure {
  const name = error instanceof Error ? error.name : 'unknown error';
  return { kind: 'failed', detail: `the stream broke: ${name}, ${causeOf(error)}`, retry: { kind: 'later' } };
}

/** Returns the failure of building a request, since the SDKs wrap network errors. The error may quote the `keys`. */
export function unbuilt(error: unknown, keys: readonly string[]): ModelFailure {
  const what = error instanceof Error ? `${error.name}: ${wordsOf(error.message, keys)}` : 'unknown error';
  return { kind: 'unsendable', detail: `the request could not be made: ${what}`, isLocal: true };
}

/** Reads `retry-after`, in seconds or as a date; without a delay when the platform sends none or an implausible one. */
export function retryAfter(headers: Headers | undefined): Extract<RetryAdvice, { kind: 'later' }> {
  const value = headers?.get('retry-after');
  if (value === null || value === undefined || value === '') return { kind: 'later' };
  const seconds = Number(value);
  // Uses the answer's own clock, so that a wrong clock here doesn't matter.
  const sentAt = Date.parse(headers?.get('date') ?? '');
  const afterMs = Number.isNaN(seconds) ? Date.parse(value) - sentAt : seconds * 1000;
  return afterMs >= 0 ? { kind: 'later', afterMs: Math.min(afterMs, longestAskedMs) } : { kind: 'later' };
}

/** Callers wait less; this only keeps the number finite. */
const longestAskedMs = 86_400_000;

/** Returns the platform's text, shortened and without any `keys` that it repeats. */
export function wordsOf(said: string, keys: readonly string[]): string {
  const clean = keys.reduce((text, key) => (key === '' ? text : text.replaceAll(key, '[secret]')), said);
  return clean.slice(0, 200);
}

/** Returns a system code such as ECONNREFUSED, which a person can look up. */
function causeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') return at.code;
  }
  return 'no further cause';
}
