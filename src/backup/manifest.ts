/**
 * A backup is a folder. Its manifest is written last, under a name that makes the folder a backup: whatever a kill leaves
 * behind has none, and the next backup removes it.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { syncFolder } from './durable-files.ts';

const database = z.object({
  kind: z.enum(['sqlite', 'postgres']),
  /** Its file in the backup; for a state that was moved aside, where it was. */
  file: z.string(),
  /** Steps of the schema that it has taken. */
  steps: z.array(z.string()),
  /** Rows by table. */
  rows: z.record(z.string(), z.number()),
});

const schema = z.object({
  format: z.literal(1),
  /** `replaced`: the state that a restore moved aside, as it was. */
  kind: z.enum(['backup', 'before-migration', 'replaced']),
  /** ISO 8601, UTC. */
  madeAt: z.string(),
  database,
  /** Entries of the data folder, which lie in `folder/`. */
  entries: z.array(z.string()),
  /** Regular files of the backup with their size and SHA-256; none for a state that was moved aside. */
  files: z.array(z.object({ path: z.string(), bytes: z.number(), sha256: z.string() })),
  /** Settings from outside the data folder: where each was, and its file in the backup. */
  settings: z.array(z.object({ from: z.string(), file: z.string() })),
});

/** Content of a backup. */
export type Manifest = z.infer<typeof schema>;
export type DatabaseRecord = z.infer<typeof database>;

/** A restore, as the restored database names it; `madeAt`: of the backup. */
export type RestoreNote = { readonly id: string; readonly madeAt: string };

const fileName = 'manifest.json';
const unfinished = '.unfinished';

/** The folder of the backups that have no other place. */
export const backupsIn = (dataDir: string): string => join(dataDir, 'backups');

/** A folder to fill; `finish` makes it a backup. */
export type BackupDraft = {
  readonly path: string;
  finish(manifest: Manifest): Promise<string>;
  discard(): Promise<void>;
};

/** Begins a backup in `parent`, and removes what interrupted ones left there. */
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
  await writeFile(join(folder, fileName), text, { mode: 0o600, flush: true });
  await syncFolder(folder);
}

/** Reads what a backup holds; undefined for a folder that is none. */
export async function readManifest(folder: string): Promise<Manifest | undefined> {
  try {
    // Our own words, and as many as there are files: a bound would make a backup that can't be brought back.
    return schema.safeParse(JSON.parse(await readFile(join(folder, fileName), 'utf8'))).data;
  } catch {
    return undefined;
  }
}

/** A backup as it is listed. */
export type FoundBackup = { readonly path: string; readonly manifest: Manifest };

/** The backups in a folder, the oldest first. */
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

/** `2026-11-22T22-30-05Z`: a time as part of a file name. */
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

/** Those of processes that have ended: another backup may be under way. */
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
