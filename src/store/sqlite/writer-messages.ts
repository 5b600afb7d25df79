import type { ErrorCode, RetryAdvice } from '#contracts/errors.ts';

/** Messages between the event loop and the writer thread. */
export type WriterRequest = {
  /** Absent when nobody waits for the answer: the step rides along with the next commit. */
  readonly id?: number;
  readonly command: string;
  readonly input: unknown;
};

export type WriterAnswer =
  | { readonly id: number; readonly kind: 'done'; readonly output: unknown }
  | { readonly id: number; readonly kind: 'failed'; readonly fault: WriterFault };

export type WriterFault = {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retry: RetryAdvice;
  readonly stack?: string;
};

export type WriterReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'unusable'; readonly fault: WriterFault }
  | { readonly kind: 'answers'; readonly answers: readonly WriterAnswer[] }
  | { readonly kind: 'closed' };
