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
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code)) {
    return {
      code: 'store_unavailable',
      message: `${file} is damaged or not a database of Parley's (${message}). Bring a backup back (${parleyCommand} restore), or use another data folder (PARLEY_DATA_DIR).`,
      retry: { kind: 'never' },
      ...stack,
    };
  }
  const isEnvironment = /^SQLITE_(IOERR|BUSY|CANTOPEN|READONLY|NOMEM|PERM|PROTOCOL)/.test(code);
  return {
    code: isEnvironment ? 'store_unavailable' : 'internal',
    message: `${code === '' ? '' : `${code}: `}${message}`,
    retry: isEnvironment ? { kind: 'later' } : { kind: 'never' },
    ...stack,
  };
}

/** The same as it is thrown. */
export function errorOf({ code, message, retry, stack }: WriterFault): ParleyError {
  return new ParleyError(code, message, { retry, cause: stack });
}
