import BetterSqlite3 from 'better-sqlite3';

/** A file held by this process; the system releases it when the process dies. */
export interface FileLock {
  release(): void;
}

/**
 * Takes a file for this process, making it if it is missing; undefined while another process has it, also
 * after waiting `waitMs` for it, during which this process stands still. The
 * lock is the operating system's, held through SQLite, so it ends with the process however that ends.
 * The file must be opened in no other way: closing it would give the lock up.
 */
export function tryLockFile(path: string, waitMs = 0): FileLock | undefined {
  const db = new BetterSqlite3(path, { timeout: waitMs });
  try {
    // Nothing is ever written: a journal on the disk would only be left behind.
    db.pragma('journal_mode = MEMORY');
    db.exec('BEGIN EXCLUSIVE');
    return { release: () => db.close() };
  } catch (error) {
    db.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
}

export function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY');
}
