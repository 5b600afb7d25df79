import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { ParleyError } from '#contracts/errors.ts';
import { isBusy } from './file-lock.ts';
import { liveProcesses } from './process-files.ts';

/** The data folder, locked by this process. */
export interface FolderLock {
  /** Permanent name of the folder, by which earlier processes on it are found. */
  readonly folderId: string;
  release(): void;
}

/** `exclusive`: no other process may use the folder; `shared`: others that share it may. */
export type FolderUse = 'exclusive' | 'shared';

/** How long a sharing process waits while another's request for exclusive use is being refused, ms. */
const passingMs = 2_000;

/**
 * Locks the data folder for this process, creating it if it is missing. The operating system holds the lock, through
 * SQLite's exclusive or shared lock on a dedicated file, so it ends with the process, however that ends. Throws
 * `data_folder_locked`, naming the process that has it, or `config_invalid` if the folder can't be used. `prepare` runs
 * under the lock, before the folder's name is read or created, since it may put the name in place.
 */
export async function lockDataFolder(
  dataDir: string,
  use: FolderUse = 'exclusive',
  prepare?: () => Promise<void>,
): Promise<FolderLock> {
  const pidFile = join(dataDir, 'parley.pid');
  const db = await openLockFile(dataDir, use === 'exclusive' ? 0 : passingMs);
  try {
    hold(db, use);
    await prepare?.();
    const folderId = await nameOf(dataDir);
    await writeFile(pidFile, String(process.pid));
    return { folderId, release: () => db.close() };
  } catch (error) {
    db.close();
    if (!isBusy(error)) throw error;
    throw await folderInUse(dataDir, pidFile);
  }
}

/** Takes the lock. Nothing is ever written to the file, so sharing processes never wait for each other's disk. */
function hold(db: BetterSqlite3.Database, use: FolderUse): void {
  db.pragma('journal_mode = MEMORY');
  db.exec(use === 'exclusive' ? 'BEGIN EXCLUSIVE' : 'BEGIN');
  // A read inside a transaction takes the shared lock, which admits other shared locks but no exclusive one.
  db.prepare('SELECT 1 FROM sqlite_master').get();
}

/** Returns the folder's name, created by its first process. Throws `config_invalid` if the file contains no name. */
async function nameOf(dataDir: string): Promise<string> {
  const path = join(dataDir, 'folder.id');
  const name = (await readIfPresent(path)) ?? (await writeOnce(path, crypto.randomUUID()));
  if (/^[0-9a-f-]{36}$/.test(name.trim())) return name.trim();
  throw new ParleyError(
    'config_invalid',
    `${path} should contain the data folder's name, but it is damaged. Restore it from a backup, or delete it: Parley then gives the folder a new name.`,
  );
}

async function folderInUse(dataDir: string, pidFile: string): Promise<ParleyError> {
  // This process may already be listed while it waits to start.
  const living = liveProcesses(dataDir).flatMap(({ pid }) => (pid === process.pid ? [] : [pid]));
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

/**
 * Writes a file once and returns its content: if several processes write at the same time, one wins and all read the
 * same. A complete file is linked into place, so nobody ever reads half of it, even after a power failure. Rejects with
 * the file system's error.
 */
export async function writeOnce(path: string, text: string, mode = 0o666): Promise<string> {
  const offer = `${path}.${crypto.randomUUID()}`;
  await writeFile(offer, text, { mode, flush: true });
  try {
    await link(offer, path);
    return text;
  } catch (error) {
    if (!isFileError(error, 'EEXIST')) throw error;
    return await readFile(path, 'utf8');
  } finally {
    await rm(offer, { force: true });
  }
}

/** Returns the file's text; undefined if there is no such file. Rejects with any other file system error. */
export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isFileError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function isFileError(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
