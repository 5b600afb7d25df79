import type { RetryAdvice } from '#contracts/errors.ts';
import type { ModelFailure } from '#contracts/model.ts';

/** A failure that a platform or the connection to it reported. */
export type ApiFault = {
  readonly failure: ModelFailure;
  /** Another API key may succeed at once: 401, billing, quota. */
  readonly isAboutKey: boolean;
};

/** The failure of a call whose signal aborted. */
export const aborted: ModelFailure = { kind: 'aborted', detail: 'aborted' };

/** The failure of a stream that ended too early. */
export const cutOff: ModelFailure = {
  kind: 'failed',
  detail: 'the stream ended before the answer did',
  retry: { kind: 'later' },
};

/** The failure of a connection that was refused or lost before there was an answer. */
export function lostConnection(error: unknown): ApiFault {
  const cause = causeOf(error);
  const failure: ModelFailure = {
    kind: 'overloaded',
    detail: `no connection: ${cause}`,
    retry: { kind: 'later' },
    ...(neverConnected.has(cause) && { isFree: true }),
  };
  return { failure, isAboutKey: false };
}

/** With these the request has not left. */
const neverConnected: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

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
