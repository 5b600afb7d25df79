import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterAll, beforeAll, describe } from 'vitest';
import type { Store, StoreSetup } from '../../src/store/base/command.ts';
import type { StoreSettings } from '../../src/store/open-configured.ts';
import { query } from '../e2e/own-database.ts';
import { openStore } from '../support/open-store.ts';
import { type SpareDatabase, takeDatabase } from './spare-databases.ts';

export type OpenStore = () => Store;

/** Access to the same database from outside the store under test. */
export type Beside = {
  /** Opens another store, as another process would; the caller closes it. */
  open(over?: Pick<StoreSetup, 'persistHook'>): Promise<Store>;
  /** The settings for a process that opens one. */
  settings(): StoreSettings;
  /** Runs a statement verbatim. */
  sql(statement: string): Promise<void>;
  readonly dialect: 'sqlite' | 'postgres';
};

/** Runs one suite on a real SQLite file and on its own real PostgreSQL database. */
export function describeEachDatabase(name: string, suite: (store: OpenStore, beside: Beside) => void): void {
  describe(`${name} on SQLite`, () => {
    let dir = '';
    let store: Store | undefined;
    const settings = () => ({ kind: 'sqlite', dataDir: dir }) as const;
    beforeAll(async () => {
      dir = await mkdtemp(join(tmpdir(), 'parley-store-'));
      store = await openStore(settings());
    });
    afterAll(async () => {
      await store?.close();
      await rm(dir, { recursive: true, force: true, maxRetries: 5 });
    });
    suite(() => opened(store), {
      dialect: 'sqlite',
      open: (over) => openStore(settings(), over),
      settings,
      sql: async (statement) => {
        const db = new BetterSqlite3(join(dir, 'parley.db'));
        db.exec(statement);
        db.close();
      },
    });
  });

  const admin = process.env.PARLEY_TEST_DATABASE_URL;
  describe.skipIf(admin === undefined)(`${name} on PostgreSQL`, () => {
    let database: SpareDatabase | undefined;
    let store: Store | undefined;
    const url = () => database?.url ?? '';
    const settings = () => ({ kind: 'postgres', url: url() }) as const;
    beforeAll(async () => {
      database = await takeDatabase(admin ?? '', async (made) =>
        (await openStore({ kind: 'postgres', url: made })).close(),
      );
      store = await openStore(settings());
    });
    afterAll(async () => {
      await store?.close();
      await database?.giveBack();
    });
    suite(() => opened(store), {
      dialect: 'postgres',
      open: (over) => openStore(settings(), over),
      settings,
      sql: async (statement) => void (await query(url(), statement)),
    });
  });
}

function opened(store: Store | undefined): Store {
  if (!store) throw new Error('the database is not open yet');
  return store;
}
