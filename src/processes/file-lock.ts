import BetterSqlite3 from 'better-sqlite3';

/** A file locked by this process; the system releases it when the process dies. */
export interface FileLock {
  release(): void;
}

/**
 * Locks a file for this process, creating it if it is missing. Returns undefined if another process still has it after
 * `waitMs`, during which this process is blocked. The operating system holds the lock, through SQLite, so it ends with
 * the process, however that ends. The file must not be opened in any other way, because closing it would release the
 * lock.
 */
export function tryLockFile(path: string, waitMs = 0): FileLock | undefined {
  const db = new BetterSqlite3(path, { timeout: waitMs });
  try {
    // Nothing is ever written, so a journal on disk would only be left behind.
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
