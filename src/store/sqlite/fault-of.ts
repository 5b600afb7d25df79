import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { WriterFault } from './writer-messages.ts';

/** A fault of the database file, as plain data: it may have to cross to the event loop. */
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
      message: `The disk that holds ${file} fails (${named}).`,
      retry: { kind: 'later' },
      ...stack,
    };
  }
  // SQLite also calls a file damaged that its disk doesn't give out (EIO).
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code)) {
    return {
      code: 'store_unavailable',
      message: `${file} is damaged or not a database of Parley's, or its disk fails (${message}). Check the disk, then bring a backup back (${parleyCommand} restore), or use another data folder (PARLEY_DATA_DIR).`,
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

/** The same as it is thrown. */
export function errorOf({ code, message, retry, stack }: WriterFault): ParleyError {
  return new ParleyError(code, message, { retry, cause: stack });
}
