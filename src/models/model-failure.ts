import { type ErrorCode, ParleyError } from '#contracts/errors.ts';
import type { ModelFailure } from '#contracts/model.ts';

const codes: Record<ModelFailure['kind'], ErrorCode> = {
  aborted: 'model_failed',
  idle: 'model_failed',
  unauthorised: 'model_unauthorised',
  overloaded: 'model_overloaded',
  overflow: 'model_overflow',
  refused: 'model_refused',
  unsendable: 'model_failed',
  failed: 'model_failed',
};

const kinds: Partial<Record<ErrorCode, ModelFailure['kind']>> = {
  model_unauthorised: 'unauthorised',
  model_overloaded: 'overloaded',
  model_overflow: 'overflow',
  model_refused: 'refused',
};

/** A failure as a fault, for calls that throw. */
export function failureError(failure: ModelFailure, cause?: unknown): ParleyError {
  return new ParleyError(codes[failure.kind], `the model call failed (${failure.kind}): ${failure.detail}`, {
    cause,
    retry: failure.retry ?? { kind: 'never' },
  });
}

/** The way back. An abort comes back as `failed`; the caller that aborted knows by the signal. */
export function failureOfError(error: ParleyError): ModelFailure {
  return { kind: kinds[error.code] ?? 'failed', detail: error.message, retry: error.retry };
}
