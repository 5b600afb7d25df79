/**
 * The plan of a restore, on the disk from just before it counts: which entries change places. On SQLite the plan itself
 * decides, as the database is one of those entries. On PostgreSQL it is written before the commit, and the restored database
 * decides: it names its restore from that commit on.
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
  /** Names the restore, here and in the restored database (table `restores`). */
  id: z.string(),
  /** PostgreSQL's database, as `databaseNameOf` writes it. */
  database: z.string().exactOptional(),
  /** Entries of the data folder that the backup brings. */
  puts: z.array(z.string()),
  /** Entries that go without a successor. */
  removes: z.array(z.string()),
  /** Folder that takes what was there. */
  kept: z.string(),
});

export type RestorePlan = z.infer<typeof schema>;

/** The folder that takes the entries before they change places. */
export const stagingIn = (dataDir: string): string => join(dataDir, '.restore');
const planIn = (dataDir: string) => join(stagingIn(dataDir), 'plan.json');

/** Writes the plan so that it survives a power cut. */
export async function writePlan(dataDir: string, plan: RestorePlan): Promise<void> {
  await writeFile(`${planIn(dataDir)}.new`, JSON.stringify(plan), { mode: 0o600, flush: true });
  await rename(`${planIn(dataDir)}.new`, planIn(dataDir));
  await syncFolder(stagingIn(dataDir));
}

/** Reads the plan of a restore that was interrupted. */
export async function readPlan(dataDir: string): Promise<RestorePlan> {
  return schema.parse(parseJson(await readFile(planIn(dataDir), 'utf8')));
}

/** Drops a plan that never counted, and what was staged for it. */
export async function dropPlan(dataDir: string): Promise<void> {
  await rm(planIn(dataDir));
  await syncFolder(stagingIn(dataDir));
  await rm(stagingIn(dataDir), { recursive: true });
}

/** True when a restore was planned and not ended. */
export function isRestoreUnfinished(dataDir: string): boolean {
  return existsSync(planIn(dataDir));
}

/**
 * Names the restores that the folder has seen, as far as they left something: with the same names before and after, and none
 * unfinished, nothing was restored between.
 */
export async function restoresSeen(dataDir: string): Promise<string> {
  return (await readdir(dataDir)).filter((name) => name.startsWith('replaced-')).join();
}

/** The database of an address, without user and password. */
export function databaseNameOf(databaseUrl: string): string {
  const { host, pathname } = new URL(databaseUrl);
  return `${host}${pathname}`;
}

/**
 * Whether the restore counts. Throws `config_invalid` when the settings name another database than the plan, and
 * `store_unavailable` when the database can't be asked now.
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
