/**
 * The plan of a restore, written to disk just before the restore takes effect: which entries to swap. On SQLite the
 * plan itself decides, because the database is one of the entries. On PostgreSQL it is written before the commit, and
 * the restored database decides: from that commit on it records its restore.
 */
import { existsSync } from 'node:fs';
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { parseJson } from '#channel-kit/parse-json.ts';
import { ParleyError } from '#contracts/errors.ts';
import { syncFolder } from './durable-files.ts';
import { hasRestore } from './postgres-restore.ts';

const schema = z.object({
  /** Identifies the restore, here and in the restored database (table `restores`). */
  id: z.string(),
  /** The PostgreSQL database, as formatted by `databaseNameOf`. */
  database: z.string().exactOptional(),
  /** Entries of the data folder that the backup provides. */
  puts: z.array(z.string()),
  /** Entries removed without a replacement. */
  removes: z.array(z.string()),
  /** Folder that receives the replaced entries. */
  kept: z.string(),
});

export type RestorePlan = z.infer<typeof schema>;

/** Returns the folder in which entries are staged before the swap. */
export const stagingIn = (dataDir: string): string => join(dataDir, '.restore');
const planIn = (dataDir: string) => join(stagingIn(dataDir), 'plan.json');

/** Writes the plan so that it survives a power failure. */
export async function writePlan(dataDir: string, plan: RestorePlan): Promise<void> {
  await writeFile(`${planIn(dataDir)}.new`, JSON.stringify(plan), { mode: 0o600, flush: true });
  await rename(`${planIn(dataDir)}.new`, planIn(dataDir));
  await syncFolder(stagingIn(dataDir));
}

/** Reads the plan of an interrupted restore. */
export async function readPlan(dataDir: string): Promise<RestorePlan> {
  return schema.parse(parseJson(await readFile(planIn(dataDir), 'utf8')));
}

/** Drops a plan that never took effect, and what was staged for it. */
export async function dropPlan(dataDir: string): Promise<void> {
  await rm(planIn(dataDir));
  await syncFolder(stagingIn(dataDir));
  await rm(stagingIn(dataDir), { recursive: true });
}

/** Says whether a restore was planned but not finished. */
export function isRestoreUnfinished(dataDir: string): boolean {
  return existsSync(planIn(dataDir));
}

/**
 * Lists the restores that the folder has seen, as far as they left something behind. If the list is the same before and
 * after, and none is unfinished, nothing was restored in between.
 */
export async function restoresSeen(dataDir: string): Promise<string> {
  return (await readdir(dataDir)).filter((name) => name.startsWith('replaced-')).join();
}

/** Returns the database of an address, without user and password. */
export function databaseNameOf(databaseUrl: string): string {
  const { host, pathname } = new URL(databaseUrl);
  return `${host}${pathname}`;
}

/**
 * Says whether the restore has taken effect. Throws `config_invalid` if the settings name a different database than the
 * plan, and `store_unavailable` if the database can't be asked now.
 */
export async function isDecided(
  { id, database }: RestorePlan,
  { dataDir, databaseUrl }: { readonly dataDir: string; readonly databaseUrl?: string | undefined },
): Promise<boolean> {
  if (database === undefined) return true;
  if (databaseUrl !== undefined && databaseNameOf(databaseUrl) === database)
    return hasRestore(databaseUrl, id);
  throw new ParleyError(
    'config_invalid',
    `A restore of the PostgreSQL database ${database} was interrupted, and DATABASE_URL doesn't name that database. Set it, then run: ${parleyCommand} restore. If the database is gone, delete ${stagingIn(dataDir)}.`,
  );
}
