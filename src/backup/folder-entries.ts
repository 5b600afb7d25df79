import { readdir } from 'node:fs/promises';

/** Entries of the data folder that belong to running processes, to one database file, or to backups themselves. */
const own =
  /^(?:parley\.(?:db(?:-(?:wal|shm|journal))?|lock|pid)|processes|redis|backups|\.restore|replaced-.*|\.room-.*|\.parley-doctor-.*)$/;

/** Entries that a backup copies besides the database: token, media, workspaces, the channels' own files. */
export async function entriesToKeep(dataDir: string): Promise<readonly string[]> {
  return (await readdir(dataDir)).filter((name) => !own.test(name)).sort();
}

/** Files of the SQLite database in the data folder. */
export const databaseFiles = ['parley.db', 'parley.db-wal', 'parley.db-shm', 'parley.db-journal'] as const;
