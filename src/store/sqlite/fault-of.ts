import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { WriterFault } from './writer-messages.ts';

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
