/** A caller's options after a fault. */
export type RetryAdvice = { readonly kind: 'never' } | { readonly kind: 'later'; readonly afterMs?: number };

/** Every code a fault can carry. Decide by code, never by message text. */
export type ErrorCode =
  | 'config_invalid'
  | 'data_folder_locked'
  | 'redis_unavailable'
  | 'store_unavailable'
  | 'store_full'
  | 'stale_epoch'
  | 'access_changed'
  | 'channel_unauthorised'
  | 'channel_unavailable'
  | 'media_too_large'
  | 'media_unavailable'
  | 'model_unauthorised'
  | 'model_overloaded'
  | 'model_overflow'
  | 'model_refused'
  | 'model_failed'
  | 'budget_spent'
  | 'tool_failed'
  /** A network's ability that it doesn't have. */
  | 'not_supported'
  | 'invalid_input'
  /** An idempotency key that belongs to another call. */
  | 'key_reused'
  | 'internal';

/** The only family of faults. Expected outcomes are values; faults are thrown. */
export class ParleyError extends Error {
  readonly code: ErrorCode;
  readonly retry: RetryAdvice;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; retry?: RetryAdvice } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ParleyError';
    this.code = code;
    this.retry = options.retry ?? { kind: 'never' };
  }
}

/** Whether the error is a fault with this code. */
export function hasCode(error: unknown, code: ErrorCode): boolean {
  return error instanceof ParleyError && error.code === code;
}

/** Whether the store accepts no writes at the moment; it recovers on its own, so callers may try again. */
export function isStoreAway(error: unknown): error is ParleyError {
  return hasCode(error, 'store_unavailable') || hasCode(error, 'store_full');
}
