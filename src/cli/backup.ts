import { existsSync, statSync } from 'node:fs';
import { isAbsolute, join, relative, resolve } from 'node:path';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { localTime } from '#channel-kit/time-text.ts';
import { ParleyError } from '#contracts/errors.ts';
import { makeBackup } from '../backup/make-backup.ts';
import { backupsIn, type FoundBackup, listBackups, readManifest } from '../backup/manifest.ts';
import { finishRestore, type RestoreEnd, restoreBackup } from '../backup/restore.ts';
import { isRestoreUnfinished } from '../backup/restore-plan.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { workspacesOutside } from '../config/workspace-rules.ts';
import { lockDataFolder } from '../processes/folder-lock.ts';
import { storeSetup } from '../steps.ts';
import { openConfiguredStore } from '../store/open-configured.ts';
import { textsFor } from '../texts/chat-texts.ts';
import { agreeWithProcesses } from './agree-with-processes.ts';
import { assertReadable } from './file-fault.ts';
import { type CommandOutput, printLines } from './print.ts';

/** Backs up the database and the data folder while the processes keep running. */
export async function backUp({ to }: { readonly to?: string }): Promise<CommandOutput> {
  const config = loadConfig();
  const { dataDir, databaseUrl } = config;
  assertReadable(dataDir);
  await agreeWithProcesses(config);
  if (databaseUrl === undefined && !existsSync(join(dataDir, 'parley.db')))
    throw new ParleyError('invalid_input', `There is no database in ${dataDir}: nothing to back up yet.`);
  const backup = await makeBackup({
    dataDir,
    settings: settingsOutside(config),
    ...(to !== undefined && { to: resolve(to) }),
    ...(databaseUrl && { databaseUrl: databaseUrl.reveal() }),
  });
  const lines = [
    describe(backup),
    `  ${backup.path}`,
    ...workspacesOutside(config, [dataDir]).map(
      (path) => `Not included: ${path}, a workspace outside the data folder`,
    ),
    `To restore it: stop Parley, then run: ${parleyCommand} restore ${shortName(backup, dataDir)}`,
  ];
  return { result: factsOf(backup, dataDir), lines };
}

/** Restores a backup; without a name, finishes an interrupted restore or else lists the backups. */
export async function restore(
  name: string | undefined,
  { asJson }: { readonly asJson: boolean },
): Promise<CommandOutput> {
  const config = loadConfig();
  const { dataDir } = config;
  if (isRestoreUnfinished(dataDir)) {
    const end = await alone(config, async (ended) => ended);
    if (name === undefined) return { result: { end }, lines: [endings[end]] };
    if (!asJson) printLines([endings[end]]);
  }
  return name === undefined ? list(dataDir) : bringBack(config, await findBackup(dataDir, name));
}

const endings: Readonly<Record<RestoreEnd, string>> = {
  none: 'Another process has already finished the interrupted restore.',
  ended: 'The interrupted restore is now complete.',
  undone: `The interrupted restore hadn't replaced anything, so it was undone. To repeat it: ${parleyCommand} restore <backup>`,
};

async function bringBack(config: Config, backup: FoundBackup): Promise<CommandOutput> {
  const { dataDir, databaseUrl } = config;
  const { kept, keptSchema } = await alone(config, () =>
    restoreBackup({ dataDir, backup, ...(databaseUrl && { databaseUrl: databaseUrl.reveal() }) }),
  );
  const lines = [
    `Restored ${describe(backup)}.`,
    `The previous data: ${kept}${keptSchema === undefined ? '' : `, and the schema ${keptSchema} of the database`}`,
    ...backup.manifest.settings.map(
      ({ from, file }) => `Not replaced: ${from}. In the backup: ${join(backup.path, file)}`,
    ),
    `Answers that were waiting to be sent aren't sent automatically, because they may have been sent since. See: ${parleyCommand} outbox list`,
  ];
  const result = { ...factsOf(backup, dataDir), kept, ...(keptSchema !== undefined && { keptSchema }) };
  return { result, lines };
}

async function list(dataDir: string): Promise<CommandOutput> {
  const found = [...(await listBackups(backupsIn(dataDir))), ...(await listBackups(dataDir))];
  const lines = found.map((backup) => `${shortName(backup, dataDir)}  ${describe(backup)}`);
  return {
    result: found.map((backup) => factsOf(backup, dataDir)),
    lines: lines.length === 0 ? [`No backups in ${backupsIn(dataDir)}.`] : lines,
  };
}

/** Copies a SQLite database into the empty PostgreSQL database of DATABASE_URL. */
export async function importSqliteFile(from?: string): Promise<CommandOutput> {
  const config = loadConfig();
  const { databaseUrl, dataDir } = config;
  if (databaseUrl === undefined)
    throw new ParleyError('invalid_input', 'Set DATABASE_URL to the empty PostgreSQL database to copy into.');
  const source = resolve(from ?? dataDir);
  const file = existsSync(source) && statSync(source).isDirectory() ? join(source, 'parley.db') : source;
  if (!existsSync(file)) throw new ParleyError('invalid_input', `${file} doesn't exist.`);
  const { importSqlite } = await import('../store/postgres/import-sqlite.ts');
  const copied = await alone({ dataDir: join(file, '..') }, async () => {
    const store = await openConfiguredStore({ config, setup: storeSetup(textsFor('en')), poolSize: 1 });
    await store.close();
    return importSqlite(file, databaseUrl.reveal());
  });
  const rows = Object.values(copied).reduce((sum, count) => sum + count, 0);
  const done = `Copied ${rows} rows of ${Object.keys(copied).length} tables. ${file} was left as it is and isn't used any more.`;
  return { result: { from: file, rows, tables: copied }, lines: [done] };
}

/**
 * Acts on a folder in a consistent state: an interrupted restore is finished first. Throws `data_folder_locked`, naming
 * the process, while another process uses the folder.
 */
async function alone<T>(
  { dataDir, databaseUrl }: Pick<Config, 'dataDir' | 'databaseUrl'>,
  act: (end: RestoreEnd) => Promise<T>,
): Promise<T> {
  let end: RestoreEnd = 'none';
  const lock = await lockDataFolder(dataDir, 'exclusive', async () => {
    end = await finishRestore({ dataDir, databaseUrl: databaseUrl?.reveal() });
  });
  try {
    return await act(end);
  } finally {
    lock.release();
  }
}

async function findBackup(dataDir: string, name: string): Promise<FoundBackup> {
  for (const path of [resolve(name), join(backupsIn(dataDir), name), join(dataDir, name)]) {
    const manifest = await readManifest(path);
    if (manifest !== undefined) return { path, manifest };
  }
  throw new ParleyError('invalid_input', `${name} isn't a backup. See: ${parleyCommand} restore`);
}

function settingsOutside({ configPath, envFiles, dataDir }: Config): readonly string[] {
  const files = [...(configPath === undefined ? [] : [configPath]), ...envFiles.map(({ path }) => path)];
  return files.filter((path) => relative(dataDir, path).startsWith('..'));
}

function shortName({ path }: FoundBackup, dataDir: string): string {
  for (const parent of [backupsIn(dataDir), dataDir]) {
    const name = relative(parent, path);
    if (!name.includes('/') && !name.startsWith('..') && !isAbsolute(name)) return name;
  }
  return path;
}

/** Returns a backup's facts for programs; `restore` accepts the name. */
function factsOf(backup: FoundBackup, dataDir: string) {
  const { kind, madeAt, database, files } = backup.manifest;
  const name = shortName(backup, dataDir);
  return {
    name,
    path: backup.path,
    kind,
    madeAt,
    database: database.kind,
    files: files.length,
    bytes: sizeOf(backup),
  };
}

function sizeOf({ manifest: { files } }: FoundBackup): number {
  return files.reduce((sum, file) => sum + file.bytes, 0);
}

const kinds = {
  backup: 'backup',
  'before-migration': 'pre-migration backup',
  replaced: 'data replaced by a restore',
} as const;

function describe(backup: FoundBackup): string {
  const { kind, madeAt, database, files } = backup.manifest;
  const size =
    files.length === 0 ? '' : `, ${files.length} files, ${(sizeOf(backup) / 1e6).toFixed(1)} MB, read back`;
  return `${kinds[kind]} of ${localTime(Date.parse(madeAt))} (${database.kind}${size})`;
}
