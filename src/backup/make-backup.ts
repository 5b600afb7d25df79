import { mkdir, realpath } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import {
  type CopiedFile,
  copyTree,
  describeFile,
  entriesToKeep,
  readContent,
  syncFolder,
} from './durable-files.ts';
import { backupsIn, beginBackup, type DatabaseRecord, type FoundBackup, timeName } from './manifest.ts';
import { dumpPostgres } from './postgres-tools.ts';
import { isRestoreUnfinished, restoresSeen } from './restore-plan.ts';
import { snapshotSqlite } from './sqlite-snapshot.ts';

export type BackupOptions = {
  readonly dataDir: string;
  /** The folder for the backup; by default `backups` in the data folder. */
  readonly to?: string;
  /** A postgres:// address; if absent, the SQLite file in the data folder is used. */
  readonly databaseUrl?: string;
  /** Files outside the data folder that belong to the installation: the configuration and `.env`. */
  readonly settings: readonly string[];
};

/**
 * Makes a backup while processes are running: first the database at one commit, then the files it may name, which are
 * written before their rows. Every file is read back. On failure it removes what it began and throws ParleyError.
 */
export async function makeBackup(options: BackupOptions): Promise<FoundBackup> {
  const now = new Date();
  const { dataDir, to = backupsIn(dataDir), settings } = options;
  await assertCopiesNoBackup(dataDir, to);
  const seen = await seenUndisturbed(dataDir);
  const draft = await beginBackup(to, timeName(now));
  try {
    const database = await copyDatabase(options, draft.path);
    const entries = await entriesToKeep(dataDir);
    const files: CopiedFile[] = [await describeFile(join(draft.path, database.file), draft.path)];
    await mkdir(join(draft.path, 'folder'), { mode: 0o700 });
    for (const name of entries) {
      const to = join(draft.path, 'folder', name);
      for (const file of await copyTree({ from: join(dataDir, name), to, base: draft.path }))
        files.push(file);
    }
    await mkdir(join(draft.path, 'settings'), { mode: 0o700 });
    const kept: { from: string; file: string }[] = [];
    for (const [index, from] of settings.entries()) {
      const file = join('settings', `${index}-${basename(from)}`);
      const copied = await copyTree({ from, to: join(draft.path, file), base: draft.path });
      if (copied.length > 0) kept.push({ from, file });
      files.push(...copied);
    }
    await Promise.all(['folder', 'settings'].map((name) => syncFolder(join(draft.path, name))));
    const { links } = await readContent(draft.path);
    if ((await seenUndisturbed(dataDir)) !== seen) throw interfering(dataDir);
    const manifest = {
      ...{ format: 1 as const, kind: 'backup' as const, madeAt: now.toISOString(), database },
      ...{ entries: [...entries], files, settings: kept },
      links: [...links].map(([path, target]) => ({ path, target })),
    };
    return { path: await draft.finish(manifest), manifest };
  } catch (error) {
    await draft.discard();
    throw inWords(error, to);
  }
}

/**
 * Returns the restores seen so far. Throws during a restore, which changes database and files one after the other: a
 * copy would mix both states.
 */
async function seenUndisturbed(dataDir: string): Promise<string> {
  if (isRestoreUnfinished(dataDir)) throw interfering(dataDir);
  return restoresSeen(dataDir);
}

function interfering(dataDir: string): ParleyError {
  return new ParleyError(
    'data_folder_locked',
    `A restore is replacing ${dataDir}. Once it has finished (${parleyCommand} restore finishes an interrupted one), run this again.`,
  );
}

/** Throws if the folder is among the copied entries: the backup would contain itself, over and over. */
async function assertCopiesNoBackup(dataDir: string, to: string): Promise<void> {
  const [first] = relative(await realPlace(dataDir), await realPlace(to)).split('/');
  if (first === '..' || first === basename(backupsIn(dataDir))) return;
  throw new ParleyError(
    'invalid_input',
    `${to} is in the data folder, which the backup copies. Name a folder outside ${dataDir}, or none to use ${backupsIn(dataDir)}.`,
  );
}

/** Resolves links in a path, even if its end doesn't exist yet. */
async function realPlace(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    const isAbsent = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (!isAbsent || dirname(path) === path) throw error;
    return join(await realPlace(dirname(path)), basename(path));
  }
}

async function copyDatabase({ dataDir, databaseUrl }: BackupOptions, into: string): Promise<DatabaseRecord> {
  if (databaseUrl !== undefined) return dumpPostgres(databaseUrl, join(into, 'parley.dump'));
  return snapshotSqlite(join(dataDir, 'parley.db'), join(into, 'parley.db'));
}

function inWords(error: unknown, to: string): unknown {
  if (!(error instanceof Error) || error instanceof ParleyError) return error;
  const code = 'code' in error ? String(error.code) : '';
  const reason = code === 'ENOSPC' || code === 'SQLITE_FULL' ? 'its disk is full' : error.message;
  return new ParleyError('store_full', `The backup couldn't be written to ${to}: ${reason}.`, {
    cause: error,
  });
}
