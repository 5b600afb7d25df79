import { readdir } from 'node:fs/promises';

/** Entries of the data folder that belong to running processes, the database, the log, or to backups themselves. */
const own =
  /^(?:parley\.(?:db(?:-(?:wal|shm|journal))?|lock|pid)|processes|redis|logs|backups|\.restore|replaced-.*|\.room-.*|\.parley-doctor-.*)$/;

/** Says whether an entry of the data folder is never part of a backup. */
export function isOwnEntry(name: string): boolean {
  return own.test(name);
}

/**
 * Lists the entries that a backup copies in addition to the database: token, media, workspaces, the channels' files.
 */
export async function entriesToKeep(dataDir: string): Promise<readonly string[]> {
  return (await readdir(dataDir)).filter((name) => !isOwnEntry(name)).sort();
}

/** Files of the SQLite database in the data folder. */
export const databaseFiles = ['parley.db', 'parley.db-wal', 'parley.db-shm', 'parley.db-journal'] as const;
