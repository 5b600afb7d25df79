/** Opens the configured database; backs it up first if this version is about to change its schema. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';
import { describeFile } from '../backup/durable-files.ts';
import { backupsIn, beginBackup, timeName } from '../backup/manifest.ts';
import { dumpPostgres } from '../backup/postgres-tools.ts';
import { snapshotSqlite } from '../backup/sqlite-snapshot.ts';
import type { Config } from '../config/config.ts';
import type { Store, StoreSetup } from './base/command.ts';
import { migrations } from './migrate.ts';
import type { StoreReport } from './store-report.ts';

export type OpenOptions = {
  readonly config: Pick<Config, 'dataDir' | 'databaseUrl'>;
  readonly setup: StoreSetup;
  readonly poolSize?: number;
  /** Called with the path of the new backup. */
  onBackup?(path: string): void;
  /** Called with the reason why there is no backup before a change of a PostgreSQL schema, which is one transaction. */
  onNoBackup?(reason: string): void;
};

/** Opens the store. Throws `store_unavailable`, `store_full`; on SQLite also if the backup before a change fails. */
export async function openConfiguredStore(options: OpenOptions): Promise<Store> {
  const { config, setup, poolSize } = options;
  const { dataDir, databaseUrl } = config;
  await backUpBeforeChange(options);
  if (databaseUrl === undefined) return openStore({ kind: 'sqlite', dataDir }, setup);
  const url = databaseUrl.reveal();
  return openStore({ kind: 'postgres', url, ...(poolSize !== undefined && { poolSize }) }, setup);
}

async function backUpBeforeChange(options: OpenOptions): Promise<void> {
  const { config, setup, onBackup, onNoBackup } = options;
  const taken = await takenSteps(config);
  const [next] = Object.keys(setup.migrations ?? migrations).filter((name) => !taken.includes(name));
  // A new database has nothing to keep.
  if (next === undefined || taken.length === 0) return;
  try {
    // A separate statement, because an optional call without a function doesn't evaluate its arguments.
    const path = await backUp(config, next);
    onBackup?.(path);
  } catch (error) {
    // Only PostgreSQL's programs may be missing. For SQLite, a failed backup, such as on a full disk, stops the change.
    if (config.databaseUrl === undefined || !(error instanceof ParleyError)) throw error;
    onNoBackup?.(error.message);
  }
}

async function takenSteps({ dataDir, databaseUrl }: OpenOptions['config']): Promise<readonly string[]> {
  if (databaseUrl !== undefined) {
    const { readPostgresSteps } = await import('./postgres/inspect-postgres.ts');
    // Opening the database, which follows, reports why it can't be reached.
    return readPostgresSteps(databaseUrl.reveal()).catch(() => []);
  }
  const file = join(dataDir, 'parley.db');
  if (!existsSync(file)) return [];
  const { readSqliteSteps } = await import('./sqlite/inspect-sqlite.ts');
  return readSqliteSteps(file);
}

async function backUp({ dataDir, databaseUrl }: OpenOptions['config'], next: string): Promise<string> {
  const now = new Date();
  const draft = await beginBackup(backupsIn(dataDir), `before-${next}-${timeName(now)}`);
  try {
    const database =
      databaseUrl === undefined
        ? await snapshotSqlite(join(dataDir, 'parley.db'), join(draft.path, 'parley.db'))
        : await dumpPostgres(databaseUrl.reveal(), join(draft.path, 'parley.dump'));
    return await draft.finish({
      ...{ format: 1, kind: 'before-migration', madeAt: now.toISOString(), database, entries: [] },
      ...{ files: [await describeFile(join(draft.path, database.file), draft.path)], settings: [] },
    });
  } catch (error) {
    await draft.discard();
    throw error;
  }
}

/** Inspects the database read-only, while others may use it. Never throws for its findings. */
export async function inspectStore(settings: StoreSettings): Promise<StoreReport> {
  if (settings.kind === 'postgres') {
    const { inspectPostgres } = await import('./postgres/inspect-postgres.ts');
    return inspectPostgres(settings.url);
  }
  const file = join(settings.dataDir, 'parley.db');
  if (!existsSync(file)) return { kind: 'absent' };
  const { inspectSqlite } = await import('./sqlite/inspect-sqlite.ts');
  return inspectSqlite(file);
}

export type StoreSettings =
  | { readonly kind: 'sqlite'; readonly dataDir: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly poolSize?: number };

/** Opens the database and brings its schema up to date. Loads only the driver that is used. */
export async function openStore(settings: StoreSettings, setup: StoreSetup): Promise<Store> {
  if (settings.kind === 'sqlite') {
    const { openSqliteStore } = await import('./sqlite/sqlite-store.ts');
    return openSqliteStore(join(settings.dataDir, 'parley.db'), setup);
  }
  const { openPostgresStore } = await import('./postgres/postgres-store.ts');
  return openPostgresStore({ url: settings.url, poolSize: settings.poolSize ?? 10 }, setup);
}
