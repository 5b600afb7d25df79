/**
 * A backup is a folder. Its manifest is written last and makes the folder a backup: anything left behind by a kill has
 * none, and the next backup removes it.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { syncFolder } from './durable-files.ts';

const database = z.object({
  kind: z.enum(['sqlite', 'postgres']),
  /** Its file in the backup; for a state that was moved aside, its former name. */
  file: z.string(),
  /** Schema migrations applied to it. */
  steps: z.array(z.string()),
  /** Rows by table. */
  rows: z.record(z.string(), z.number()),
});

const schema = z.object({
  format: z.literal(1),
  /** `replaced`: a state that a restore moved aside unchanged. */
  kind: z.enum(['backup', 'before-migration', 'replaced']),
  /** ISO 8601, UTC. */
  madeAt: z.string(),
  database,
  /** Entries of the data folder, stored in `folder/`. */
  entries: z.array(z.string()),
  /** Regular files of the backup with size and SHA-256; empty for a state that was moved aside. */
  files: z.array(z.object({ path: z.string(), bytes: z.number(), sha256: z.string() })),
  /** Links of the backup and where each leads; absent in backups of before 0.3. */
  links: z.array(z.object({ path: z.string(), target: z.string() })).exactOptional(),
  /** Settings from outside the data folder: where each was, and its file in the backup. */
  settings: z.array(z.object({ from: z.string(), file: z.string() })),
});

/** Content of a backup. */
export type Manifest = z.infer<typeof schema>;
export type DatabaseRecord = z.infer<typeof database>;

/** A restore as recorded in the restored database; `madeAt` is the backup's. */
export type RestoreNote = { readonly id: string; readonly madeAt: string };

export const manifestName = 'manifest.json';
const unfinished = '.unfinished';

/** Returns the default folder for backups. */
export const backupsIn = (dataDir: string): string => join(dataDir, 'backups');

/** A folder to be filled; `finish` turns it into a backup. */
export type BackupDraft = {
  readonly path: string;
  finish(manifest: Manifest): Promise<string>;
  discard(): Promise<void>;
};

/** Begins a backup in `parent`, and removes what interrupted backups left there. */
export async function beginBackup(parent: string, name: string): Promise<BackupDraft> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  await removeUnfinished(parent);
  const final = join(parent, await freeName(parent, name));
  const path = `${final}.${process.pid}${unfinished}`;
  await mkdir(path, { mode: 0o700 });
  return {
    path,
    finish: async (manifest) => {
      await writeManifest(path, manifest);
      await rename(path, final);
      await syncFolder(parent);
      return final;
    },
    discard: () => rm(path, { recursive: true, force: true }),
  };
}

/** Writes the manifest into a folder and flushes both. */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const text = `${JSON.stringify(manifest, undefined, 1)}\n`;
  await writeFile(join(folder, manifestName), text, { mode: 0o600, flush: true });
  await syncFolder(folder);
}

/** Reads the manifest of a backup; undefined if the folder isn't one. */
export async function readManifest(folder: string): Promise<Manifest | undefined> {
  try {
    // Parley wrote it, and its size depends on the number of files: a limit could make a backup impossible to restore.
    return schema.safeParse(JSON.parse(await readFile(join(folder, manifestName), 'utf8'))).data;
  } catch {
    return undefined;
  }
}

/** A backup as it is listed. */
export type FoundBackup = { readonly path: string; readonly manifest: Manifest };

/** Lists the backups in a folder, oldest first. */
export async function listBackups(parent: string): Promise<readonly FoundBackup[]> {
  const names = await readdir(parent).catch(() => []);
  const found = names
    .filter((name) => !name.endsWith(unfinished))
    .map(async (name) => {
      const path = join(parent, name);
      const manifest = await readManifest(path);
      return manifest === undefined ? [] : [{ path, manifest }];
    });
  const backups = (await Promise.all(found)).flat();
  return backups.toSorted((a, b) => a.manifest.madeAt.localeCompare(b.manifest.madeAt));
}

/** Formats a time for use in a file name: `2026-11-22T22-30-05Z`. */
export function timeName(time: Date): string {
  return `${time.toISOString().slice(0, 19).replaceAll(':', '-')}Z`;
}

async function freeName(parent: string, name: string): Promise<string> {
  const taken = new Set(await readdir(parent));
  for (let count = 1; ; count++) {
    const one = count === 1 ? name : `${name}-${count}`;
    if (!taken.has(one)) return one;
  }
}

/** Removes only drafts of processes that have ended, since another backup may be in progress. */
async function removeUnfinished(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const [, pid] = new RegExp(`\\.(\\d+)\\${unfinished}$`).exec(name) ?? [];
    if (pid !== undefined && !isAlive(Number(pid)))
      await rm(join(parent, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return pid !== process.pid;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
