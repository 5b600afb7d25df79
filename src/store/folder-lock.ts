import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { ParleyError } from '#contracts/errors.ts';

export interface FolderLock {
  /** Names the folder for ever; processes that had it before are found by it. */
  readonly folderId: string;
  release(): void;
}

/**
 * Takes the data folder for this process, making it if it is missing. The lock is the operating system's, held through SQLite's
 * exclusive lock on a file of its own, so it ends with the process however that ends. Throws
 * `data_folder_locked`, naming the process that has it, or `config_invalid` when it cannot be used.
 */
export async function lockDataFolder(dataDir: string): Promise<FolderLock> {
  const pidFile = join(dataDir, 'parley.pid');
  const db = await openLockFile(dataDir);
  try {
    db.pragma('locking_mode = EXCLUSIVE');
    db.exec('BEGIN EXCLUSIVE');
    db.exec('CREATE TABLE IF NOT EXISTS folder (id TEXT NOT NULL)');
    if (!db.prepare('SELECT id FROM folder').get())
      db.prepare('INSERT INTO folder VALUES (?)').run(crypto.randomUUID());
    const { id } = db.prepare('SELECT id FROM folder').get() as { id: string };
    // Committing in exclusive mode keeps the lock for as long as the connection lives.
    db.exec('COMMIT');
    db.exec('BEGIN EXCLUSIVE');
    await writeFile(pidFile, String(process.pid));
    return { folderId: id, release: () => db.close() };
  } catch (error) {
    db.close();
    if (!(error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY')) throw error;
    const pid = await readFile(pidFile, 'utf8').catch(() => 'unknown');
    throw new ParleyError(
      'data_folder_locked',
      `The data folder ${dataDir} is in use by process ${pid}. Stop that one first, or give this one another folder (PARLEY_DATA_DIR).`,
    );
  }
}

async function openLockFile(dataDir: string): Promise<BetterSqlite3.Database> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    return new BetterSqlite3(join(dataDir, 'parley.lock'), { timeout: 0 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ParleyError(
      'config_invalid',
      `The data folder ${dataDir} cannot be used (${reason}). Make it a folder that Parley may write to, or name another (PARLEY_DATA_DIR).`,
      { cause: error },
    );
  }
}
