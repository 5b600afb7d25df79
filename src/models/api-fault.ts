import { neverLeft } from '#channel-kit/network-fault.ts';
import { type ErrorCode, ParleyError } from '#contracts/errors.ts';
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

/** Returns the platform's text, shortened and without any `keys` that it repeats. */
export function wordsOf(said: string, keys: readonly string[]): string {
  const clean = keys.reduce((text, key) => (key === '' ? text : text.replaceAll(key, '[secret]')), said);
  return clean.slice(0, 300);
}

/** Returns a system code such as ECONNREFUSED, which a person can look up. */
function causeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') return at.code;
  }
  return 'no further cause';
}

const codes: Record<ModelFailure['kind'], ErrorCode> = {
  aborted: 'model_failed',
  unauthorised: 'model_unauthorised',
  overloaded: 'model_overloaded',
  overflow: 'model_overflow',
  refused: 'model_refused',
  unsendable: 'model_failed',
  oversized: 'model_failed',
  budget: 'budget_spent',
  failed: 'model_failed',
};

const kinds: Partial<Record<ErrorCode, ModelFailure['kind']>> = {
  model_unauthorised: 'unauthorised',
  model_overloaded: 'overloaded',
  model_overflow: 'overflow',
  model_refused: 'refused',
  budget_spent: 'budget',
};

/** Turns a failure into a fault, for calls that throw. */
export function failureError(failure: ModelFailure, cause?: unknown): ParleyError {
  return new ModelError(failure, cause);
}

class ModelError extends ParleyError {
  readonly failure: ModelFailure;

  constructor(failure: ModelFailure, cause: unknown) {
    const { kind, detail, retry = { kind: 'never' } } = failure;
    super(codes[kind], `the model call failed (${kind}): ${detail}`, { cause, retry });
    this.failure = failure;
  }
}

/** Turns a fault back into a failure; one that wasn't made from a failure is mapped by its code. */
export function failureOfError(error: ParleyError): ModelFailure {
  if (error instanceof ModelError) return error.failure;
  return { kind: kinds[error.code] ?? 'failed', detail: error.message, retry: error.retry };
}
