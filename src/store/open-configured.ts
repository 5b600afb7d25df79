/** Opens the database of the configuration, after a backup when this version is about to change its schema. */
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
import { openStore } from './open-store.ts';

export type OpenOptions = {
  readonly config: Pick<Config, 'dataDir' | 'databaseUrl'>;
  readonly setup: StoreSetup;
  readonly poolSize?: number;
  /** Called with the path of the backup that was made. */
  onBackup?(path: string): void;
  /** Called with the reason why none was made before a change of a PostgreSQL database, which is one transaction. */
  onNoBackup?(reason: string): void;
};

/** Throws `store_unavailable`, `store_full`; on SQLite also when the backup before a change of the schema fails. */
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
    // Made first: an optional call without a function evaluates nothing.
    const path = await backUp(config, next);
    onBackup?.(path);
  } catch (error) {
    // Only PostgreSQL's programs may be missing; a disk that is full stops the change of a file on it.
    if (config.databaseUrl === undefined || !(error instanceof ParleyError)) throw error;
    onNoBackup?.(error.message);
  }
}

async function takenSteps({ dataDir, databaseUrl }: OpenOptions['config']): Promise<readonly string[]> {
  if (databaseUrl !== undefined) {
    const { readPostgresSteps } = await import('./postgres/inspect-postgres.ts');
    // Opening it, which follows, says why it can't be reached.
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
