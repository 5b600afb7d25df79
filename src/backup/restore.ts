/**
 * Puts a backup in the place of what is there. Everything is copied and checked first; then files change places by renames
 * that a plan on the disk names, so the next process can end what a kill interrupted. The state before is kept. The restored
 * database names its restore (table `restores`) from the moment it takes its place: the next start sends nothing blindly.
 */

import { lstatSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import { copyTree, describeFile, syncFolder } from './durable-files.ts';
import { databaseFiles } from './folder-entries.ts';
import { type FoundBackup, type Manifest, type RestoreNote, timeName, writeManifest } from './manifest.ts';
import { restorePostgres } from './postgres-restore.ts';
import {
  databaseNameOf,
  dropPlan,
  isDecided,
  isRestoreUnfinished,
  type RestorePlan,
  readPlan,
  stagingIn,
  writePlan,
} from './restore-plan.ts';
import { describeSqlite, noteRestore } from './sqlite-snapshot.ts';

/** Compares every file of a backup with its manifest and opens its database. Throws ParleyError naming what differs. */
export async function verifyBackup({ path, manifest }: FoundBackup): Promise<void> {
  for (const { path: file, bytes, sha256 } of manifest.files) {
    const found = await describeFile(join(path, file), path).catch(() => undefined);
    if (found?.bytes !== bytes || found.sha256 !== sha256)
      throw new ParleyError(
        'invalid_input',
        `${join(path, file)} ${found ? 'was changed' : 'is missing'}: this backup can't be trusted. Nothing was replaced.`,
      );
  }
}

export type RestoreOptions = {
  readonly dataDir: string;
  readonly databaseUrl?: string;
  readonly backup: FoundBackup;
};

/** The state that was replaced: a folder, on PostgreSQL also a schema of its database. */
export type RestoreResult = { readonly kept: string; readonly keptSchema?: string };

/**
 * Restores a backup into the data folder, which the caller holds alone. Throws ParleyError before anything was replaced, or
 * when the database refuses.
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreResult> {
  const now = new Date();
  const { dataDir, databaseUrl, backup } = options;
  const { manifest, path } = backup;
  refuseOtherKind(manifest, databaseUrl);
  if (manifest.kind === 'replaced' && databaseUrl !== undefined)
    throw new ParleyError(
      'invalid_input',
      "A replaced state of PostgreSQL is a schema of its database (\\dn in psql); this command can't bring it back.",
    );
  await verifyBackup(backup);
  const staging = stagingIn(dataDir);
  await rm(staging, { recursive: true, force: true });
  await mkdir(staging, { mode: 0o700 });
  const kept = freePath(join(dataDir, `replaced-${timeName(now)}`));
  const note = { id: crypto.randomUUID(), madeAt: manifest.madeAt };
  const puts = await stage(backup, staging, note);
  const plan = { id: note.id, puts, kept };
  if (databaseUrl === undefined) {
    await writePlan(dataDir, { ...plan, removes: databaseFiles.filter((name) => !puts.includes(name)) });
    await finishRestore({ dataDir });
    return { kept };
  }
  const keptSchema = `parley_replaced_${timeName(now)}_${note.id.slice(0, 4)}`
    .replace(/\W/g, '_')
    .toLowerCase();
  const { database: record } = manifest;
  const decide = () => writePlan(dataDir, { ...plan, removes: [], database: databaseNameOf(databaseUrl) });
  const replacing = { dump: join(path, record.file), record, note, kept: keptSchema, decide };
  const fault: unknown = await restorePostgres(databaseUrl, replacing).catch((error: unknown) => error);
  // The database knows whether it was committed, also when the connection broke in the commit.
  if ((await finishRestore({ dataDir, databaseUrl })) === 'ended') return { kept, keptSchema };
  throw fault ?? new ParleyError('internal', 'The restore was not committed. Nothing was replaced.');
}

/** Copies what the backup holds beside its place, and opens the copy of the database. */
async function stage({ path, manifest }: FoundBackup, staging: string, note: RestoreNote): Promise<string[]> {
  const puts: string[] = [];
  if (manifest.database.kind === 'sqlite') {
    // A state that was moved aside may have its last commits in a log of its own.
    for (const name of databaseFiles) {
      if (!isThere(join(path, name))) continue;
      await copyTree({ from: join(path, name), to: join(staging, name), base: staging });
      puts.push(name);
    }
    checkDatabase(join(staging, 'parley.db'), manifest);
    noteRestore(join(staging, 'parley.db'), note);
    // Opened alone, the database has taken over its log.
    for (const name of databaseFiles.slice(1)) await rm(join(staging, name), { force: true });
    puts.splice(0, puts.length, 'parley.db');
  }
  for (const name of manifest.entries) {
    await copyTree({ from: join(path, 'folder', name), to: join(staging, name), base: staging });
    if (isThere(join(staging, name))) puts.push(name);
  }
  return puts;
}

function checkDatabase(file: string, { kind, database }: Manifest): void {
  const found = describeSqlite(file);
  if (kind === 'replaced') return;
  const lacking = Object.entries(database.rows).filter(([table, rows]) => found.rows[table] !== rows);
  if (lacking.length > 0)
    throw new ParleyError(
      'invalid_input',
      `The backup's table ${lacking[0]?.[0]} lacks rows. Nothing was replaced.`,
    );
}

function refuseOtherKind({ database }: Manifest, databaseUrl: string | undefined): void {
  const needed = databaseUrl === undefined ? 'sqlite' : 'postgres';
  if (database.kind === needed) return;
  const fix =
    needed === 'sqlite'
      ? 'set DATABASE_URL to the database it belongs to'
      : `unset DATABASE_URL, or bring it into PostgreSQL with: ${parleyCommand} import sqlite`;
  throw new ParleyError('invalid_input', `This backup is of ${database.kind}; ${fix}.`);
}

/** How an interrupted restore went on: it ended, or was `undone` since it had replaced nothing; `none` was there. */
export type RestoreEnd = 'none' | 'ended' | 'undone';

/**
 * Ends a restore that was interrupted, if there is one: with all of it, or with nothing. Safe to repeat, whenever it was
 * interrupted. Call it with the folder held alone and before anything is written into it. Throws as `isDecided`.
 */
export async function finishRestore(place: {
  readonly dataDir: string;
  readonly databaseUrl?: string | undefined;
}): Promise<RestoreEnd> {
  const { dataDir } = place;
  if (!isRestoreUnfinished(dataDir)) return 'none';
  const staging = stagingIn(dataDir);
  const plan = await readPlan(dataDir);
  if (!(await isDecided(plan, place))) {
    await dropPlan(dataDir);
    return 'undone';
  }
  await mkdir(join(plan.kept, 'folder'), { recursive: true, mode: 0o700 });
  // Staged entries have not changed places yet; all others lie where they belong.
  const open = plan.puts.filter((name) => isThere(join(staging, name)));
  // The logs go first: with another database beside them they would be taken for its own.
  const leaving = [...plan.removes, ...open].filter((name) => isThere(join(dataDir, name)));
  for (const name of leaving) await rename(join(dataDir, name), freePath(keptPlace(plan.kept, name)));
  await syncFolder(dataDir);
  for (const name of open) await rename(join(staging, name), join(dataDir, name));
  await syncFolder(dataDir);
  await describeKept(plan);
  await rm(staging, { recursive: true });
  return 'ended';
}

function keptPlace(kept: string, name: string): string {
  return databaseFiles.some((file) => file === name) ? join(kept, name) : join(kept, 'folder', name);
}

/** Makes what was replaced a backup that the same command brings back, unless there was no database. */
async function describeKept({ kept, puts, database }: RestorePlan): Promise<void> {
  if (database === undefined && !isThere(join(kept, 'parley.db'))) return;
  const entries = puts.filter((name) => isThere(join(kept, 'folder', name)));
  const kind = database === undefined ? 'sqlite' : 'postgres';
  await writeManifest(kept, {
    ...{ format: 1, kind: 'replaced', madeAt: new Date().toISOString(), files: [], settings: [] },
    database: { kind, file: 'parley.db', steps: [], rows: {} },
    entries,
  });
}

/** Finds a name that nothing has: a state that was kept is never written over. */
function freePath(path: string): string {
  for (let count = 1; ; count++) {
    const one = count === 1 ? path : `${path}-${count}`;
    if (!isThere(one)) return one;
  }
}

/** Also of a link whose target is away: a workspace may lie on another disk. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
