import { type ErrorCode, ParleyError } from '#contracts/errors.ts';
import type { ModelFailure } from '#contracts/model.ts';

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
