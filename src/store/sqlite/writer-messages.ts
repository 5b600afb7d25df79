import type { ErrorCode, RetryAdvice } from '#contracts/errors.ts';

/** A request from the event loop to the writer thread. */
export type WriterRequest = {
  /** Absent if nothing awaits the answer: the step then rides along with the next commit. */
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
