import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { ParleyError } from '#contracts/errors.ts';
import { isBusy } from './file-lock.ts';
import { liveProcesses } from './process-files.ts';

/** The data folder, held by this process. */
export interface FolderLock {
  /** Names the folder for ever; processes that had it before are found by it. */
  readonly folderId: string;
  release(): void;
}

/** `exclusive`: no other process may use the folder; `shared`: others that share it may. */
export type FolderUse = 'exclusive' | 'shared';

/**
 * Takes the data folder for this process, making it if it is missing. The lock is the operating system's, held through SQLite's
 * exclusive or shared lock on a file of its own, so it ends with the process however that ends. Throws
 * `data_folder_locked`, naming the process that has it, or `config_invalid` when it cannot be used.
 */
export async function lockDataFolder(dataDir: string, use: FolderUse = 'exclusive'): Promise<FolderLock> {
  const pidFile = join(dataDir, 'parley.pid');
  const db = await openLockFile(dataDir, use === 'exclusive' ? 0 : namingMs);
  try {
    const folderId = use === 'exclusive' ? lockExclusive(db) : lockShared(db);
    await writeFile(pidFile, String(process.pid));
    return { folderId, release: () => db.close() };
  } catch (error) {
    db.close();
    if (!isBusy(error)) throw error;
    throw await folderInUse(dataDir, pidFile);
  }
}

function lockExclusive(db: BetterSqlite3.Database): string {
  db.pragma('locking_mode = EXCLUSIVE');
  db.exec('BEGIN EXCLUSIVE');
  const id = nameFolder(db);
  // Committing in exclusive mode keeps the lock for as long as the connection lives.
  db.exec('COMMIT');
  db.exec('BEGIN EXCLUSIVE');
  return id;
}

/** How long one who shares waits for another that is naming the folder, ms. */
const namingMs = 10_000;

/** An open read transaction holds the shared lock, which admits others of its kind and nobody alone. */
function lockShared(db: BetterSqlite3.Database): string {
  const named = readShared(db);
  if (named !== undefined) return named;
  db.exec('COMMIT');
  db.exec('BEGIN IMMEDIATE');
  nameFolder(db);
  db.exec('COMMIT');
  // Nobody takes the name away again.
  return readShared(db) ?? nameFolder(db);
}

function readShared(db: BetterSqlite3.Database): string | undefined {
  db.exec('BEGIN');
  const isNamed = db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'folder'`).get() !== undefined;
  if (!isNamed) return undefined;
  return (db.prepare('SELECT id FROM folder').get() as { id: string } | undefined)?.id;
}

function nameFolder(db: BetterSqlite3.Database): string {
  db.exec('CREATE TABLE IF NOT EXISTS folder (id TEXT NOT NULL)');
  if (!db.prepare('SELECT id FROM folder').get())
    db.prepare('INSERT INTO folder VALUES (?)').run(crypto.randomUUID());
  return (db.prepare('SELECT id FROM folder').get() as { id: string }).id;
}

async function folderInUse(dataDir: string, pidFile: string): Promise<ParleyError> {
  const living = liveProcesses(dataDir).map(({ pid }) => pid);
  const pids = living.length > 0 ? living.join(', ') : await readFile(pidFile, 'utf8').catch(() => 'unknown');
  return new ParleyError(
    'data_folder_locked',
    `The data folder ${dataDir} is in use by process ${pids}. Stop that process first, or use another folder (PARLEY_DATA_DIR). Only processes with --role gateway and --role worker share a folder.`,
  );
}

async function openLockFile(dataDir: string, waitMs: number): Promise<BetterSqlite3.Database> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    return new BetterSqlite3(join(dataDir, 'parley.lock'), { timeout: waitMs });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ParleyError(
      'config_invalid',
      `The data folder ${dataDir} can't be used (${reason}). Make it a folder that Parley can write to, or use another (PARLEY_DATA_DIR).`,
      { cause: error },
    );
  }
}
