/**
 * Replaces the current state with a backup. Everything is copied and checked first; then files are swapped by renames
 * listed in a plan on disk, so the next process can finish what a kill interrupted. The previous state is kept. From
 * the moment it takes its place, the restored database records its restore (table `restores`), so that the next start
 * sends nothing blindly.
 */

import { lstatSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, isAbsolute, join, normalize, relative, resolve } from 'node:path';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import {
  copyTree,
  databaseFiles,
  describeFile,
  type FolderContent,
  isOwnEntry,
  readContent,
  syncFolder,
} from './durable-files.ts';
import {
  type FoundBackup,
  type Manifest,
  manifestName,
  type RestoreNote,
  timeName,
  writeManifest,
} from './manifest.ts';
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

/** Where the replaced state is kept: in a folder and, on PostgreSQL, also in a schema of its database. */
export type RestoreResult = { readonly kept: string; readonly keptSchema?: string };

/**
 * Restores a backup into the data folder, which the caller must have locked exclusively. Throws ParleyError before
 * anything is replaced, or if the database rejects the restore.
 */
export async function restoreBackup(options: {
  readonly dataDir: string;
  readonly databaseUrl?: string;
  readonly backup: FoundBackup;
}): Promise<RestoreResult> {
  const now = new Date();
  const { dataDir, databaseUrl, backup } = options;
  const { manifest, path } = backup;
  refuseOtherKind(manifest, databaseUrl);
  if (manifest.kind === 'replaced' && databaseUrl !== undefined)
    throw new ParleyError(
      'invalid_input',
      "A replaced PostgreSQL state is a schema of its database (\\dn in psql); this command can't restore it.",
    );
  refuseForeignState(backup, dataDir);
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
  // The database knows whether it was committed, even if the connection broke during the commit.
  if ((await finishRestore({ dataDir, databaseUrl })) === 'ended') return { kept, keptSchema };
  throw fault ?? new ParleyError('internal', 'The restore was not committed. Nothing was replaced.');
}

/** Copies the backup's content into the staging folder, and opens the copy of the database. */
async function stage({ path, manifest }: FoundBackup, staging: string, note: RestoreNote): Promise<string[]> {
  const puts: string[] = [];
  if (manifest.database.kind === 'sqlite') {
    // A state that was moved aside may have its last commits in a separate log file.
    for (const name of databaseFiles) {
      if (!isThere(join(path, name))) continue;
      await copyTree({ from: join(path, name), to: join(staging, name), base: staging });
      puts.push(name);
    }
    checkDatabase(join(staging, 'parley.db'), manifest);
    noteRestore(join(staging, 'parley.db'), note);
    // The database was opened exclusively and has absorbed its log.
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
      `The backup's table ${lacking[0]?.[0]} is missing rows. Nothing was replaced.`,
    );
}

/** A state that was moved aside has no list of files, so only the folder's own is trusted. */
function refuseForeignState({ path, manifest }: FoundBackup, dataDir: string): void {
  if (manifest.kind !== 'replaced' || dirname(resolve(path)) === resolve(dataDir)) return;
  throw new ParleyError(
    'invalid_input',
    `${path} was moved aside by a restore, and is only accepted in the data folder. Move it to ${dataDir} first.`,
  );
}

function refuseOtherKind({ database }: Manifest, databaseUrl: string | undefined): void {
  const needed = databaseUrl === undefined ? 'sqlite' : 'postgres';
  if (database.kind === needed) return;
  const fix =
    needed === 'sqlite'
      ? 'set DATABASE_URL to the database it belongs to'
      : `unset DATABASE_URL, or bring it into PostgreSQL with: ${parleyCommand} import sqlite`;
  throw new ParleyError('invalid_input', `This is a backup of ${database.kind}; ${fix}.`);
}

/**
 * Outcome of an interrupted restore: `ended`, or `undone` because it had replaced nothing; `none` if there was none.
 */
export type RestoreEnd = 'none' | 'ended' | 'undone';

/**
 * Finishes an interrupted restore, if there is one, either completely or by undoing it. Safe to repeat, whenever it is
 * interrupted. Call it with the folder locked exclusively, before anything is written into it. Throws like `isDecided`.
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
  // Entries still staged haven't been swapped yet; all others are where they belong.
  const open = plan.puts.filter((name) => isThere(join(staging, name)));
  // The logs are moved first: next to another database they would be taken for its own.
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

/** Turns the replaced state into a backup that the same command can restore, unless it had no database. */
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

/** Finds an unused name, so that a kept state is never overwritten. */
function freePath(path: string): string {
  for (let count = 1; ; count++) {
    const one = count === 1 ? path : `${path}-${count}`;
    if (!isThere(one)) return one;
  }
}

/** True also for a link with a missing target: a workspace may be on another disk. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

// Decides whether a folder is the backup that its manifest describes: nothing in it leads elsewhere, every file is
// listed, and every listed file is as it was written. A backup may have been on a stick or a server in the meantime.

/** Throws ParleyError `invalid_input` naming the first file that doesn't belong there, is missing or was changed. */
export async function verifyBackup({ path, manifest }: FoundBackup): Promise<void> {
  refuseUnsafeNames(path, manifest);
  if (manifest.kind === 'replaced') return;
  const { files, links } = await readContent(path);
  const found = { files: new Set([...files].filter((file) => file !== manifestName)), links };
  await refuseStrangers(path, { manifest, found });
  for (const { path: file, bytes, sha256 } of manifest.files) {
    const copy = found.files.has(file)
      ? await describeFile(join(path, file), path).catch(() => undefined)
      : undefined;
    if (copy?.bytes !== bytes || copy.sha256 !== sha256)
      throw distrust(`${join(path, file)} ${copy ? 'was changed' : 'is missing'}`);
  }
}

/** Refuses names that lead out of the backup, or that a restore would put in the place of Parley's own files. */
function refuseUnsafeNames(path: string, { entries, files, links = [], settings, database }: Manifest): void {
  const paths = [...files, ...links].map((one) => one.path).concat(settings.map(({ file }) => file));
  const outside = [...paths, database.file].find((name) => !isInside(name));
  if (outside !== undefined)
    throw distrust(`${join(path, manifestName)} names ${outside}, which is outside the backup`);
  const wrong = entries.find((name) => !isInside(name) || /[\\/]/.test(name) || isOwnEntry(name));
  if (wrong !== undefined)
    throw distrust(`${join(path, manifestName)} names ${wrong}, which is never in a backup`);
}

/** Accepts only the plain form of a path below the folder: `media/2026/picture`. */
function isInside(name: string): boolean {
  return (
    name !== '' &&
    name !== '.' &&
    !isAbsolute(name) &&
    normalize(name) === name &&
    !/^\.\.(?:\/|$)/.test(name)
  );
}

async function refuseStrangers(
  path: string,
  { manifest, found }: { readonly manifest: Manifest; readonly found: FolderContent },
): Promise<void> {
  const listed = new Set(manifest.files.map((file) => file.path));
  const stranger = [...found.files].find((file) => !listed.has(file));
  if (stranger !== undefined) throw distrust(`${join(path, stranger)} isn't in its list of files`);
  // Older backups have no list of links; those that stay inside are harmless.
  const { links } = manifest;
  const known = links && new Map(links.map((link) => [link.path, link.target]));
  for (const [link, target] of found.links) {
    if (known === undefined ? !leadsOut(path, link, target) : known.get(link) === target) continue;
    const problem = known === undefined ? 'leads out of the backup' : "isn't in its list of links";
    throw distrust(`${join(path, link)}, a link to ${target}, ${problem}`);
  }
}

function leadsOut(path: string, link: string, target: string): boolean {
  const place = relative(path, resolve(dirname(join(path, link)), target));
  return isAbsolute(target) || !isInside(place);
}

function distrust(what: string): ParleyError {
  return new ParleyError('invalid_input', `${what}: this backup can't be trusted. Nothing was replaced.`);
}
