import { parleyCommand } from '#channel-kit/own-commands.ts';
import { type ErrorCode, ParleyError, type RetryAdvice } from '#contracts/errors.ts';
import type { PersistedCall } from '#contracts/hook.ts';
import type { MessagePart } from '#contracts/message.ts';

/** A request from the event loop to the writer thread. */
export type WriterRequest = {
  /** Absent if nothing awaits the answer: the step then rides along with the next commit. */
  readonly id?: number;
  readonly command: string;
  readonly input: unknown;
  /** Results of the step as hooks have left them; absent without such a hook. */
  readonly judged?: readonly JudgedResult[];
};

/** A result that a step words, before or after the hooks have seen it. */
export type JudgedResult = { readonly of: PersistedCall; readonly parts: readonly MessagePart[] };

export type WriterAnswer =
  | { readonly id: number; readonly kind: 'done'; readonly output: unknown }
  /** Nothing was written: the step is repeated once hooks have seen this result. */
  | ({ readonly id: number; readonly kind: 'unjudged' } & JudgedResult)
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

/** Returns a fault of the database file as plain data, since it may have to cross to the event loop. */
export function faultOf(error: unknown, file: string): WriterFault {
  if (error instanceof ParleyError) {
    return {
      code: error.code,
      message: error.message,
      retry: error.retry,
      ...(error.stack && { stack: error.stack }),
    };
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error && error.stack ? { stack: error.stack } : {};
  if (code === 'SQLITE_FULL') {
    return {
      code: 'store_full',
      message: `The disk that holds ${file} is full.`,
      retry: { kind: 'later' },
      ...stack,
    };
  }
  const named = `${code === '' ? '' : `${code}: `}${message}`;
  if (code.startsWith('SQLITE_IOERR')) {
    return {
      code: 'store_unavailable',
      message: `The disk that holds ${file} is failing (${named}).`,
      retry: { kind: 'later' },
      ...stack,
    };
  }
  // SQLite also reports a file as damaged if the disk can't read it (EIO).
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code)) {
    return {
      code: 'store_unavailable',
      message: `${file} is damaged or isn't a Parley database, or its disk is failing (${message}). Check the disk, then restore a backup (${parleyCommand} restore), or use another data folder (PARLEY_DATA_DIR).`,
      retry: { kind: 'never' },
      ...stack,
    };
  }
  if (/^SQLITE_(BUSY|CANTOPEN|READONLY|NOMEM|PERM|PROTOCOL)/.test(code)) {
    return {
      code: 'store_unavailable',
      message: `${file} can't be used now (${named}).`,
      retry: { kind: 'later' },
      ...stack,
    };
  }
  return { code: 'internal', message: named, retry: { kind: 'never' }, ...stack };
}

/** Returns the fault as the error to throw. */
export function errorOf({ code, message, retry, stack }: WriterFault): ParleyError {
  return new ParleyError(code, message, { retry, cause: stack });
}
