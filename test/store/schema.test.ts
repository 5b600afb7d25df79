import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { differencesOf, migrationNames, migrations } from '../../src/store/migrate.ts';
import {
  type AskCatalog,
  expectedCatalog,
  fingerprintOf,
  readCatalog,
} from '../../src/store/migrations/catalog.ts';
import { inspectStore, type StoreSettings } from '../../src/store/open-configured.ts';
import { databaseServer, makeDatabase } from '../e2e/own-database.ts';
import { openStore } from '../support/open-store.ts';
import { aFolder } from '../support/own-folder.ts';

/** What is done to a database of this version, and what its next start finds. */
const alterations: readonly (readonly [string, readonly string[], RegExp])[] = [
  ['a missing table', ['drop table "sessionUsage"'], /the table sessionUsage is missing\. /],
  ['a missing column', ['alter table lanes drop column "overflow"'], /the column lanes\.overflow is missing/],
  ['an unknown column', ['alter table inbox add column colour text'], /the column inbox\.colour is unknown/],
  [
    'a renamed column',
    ['alter table budgets rename column "touchedAt" to "usedAt"'],
    /the column budgets\.touchedAt is missing; the column budgets\.usedAt is unknown/,
  ],
  [
    'a column of another type',
    ['drop table lockouts', 'create table lockouts (source text primary key not null, until text)'],
    /the column lockouts\.until is "text" instead of "bigint not null"/,
  ],
  [
    'another key',
    ['drop table lockouts', 'create table lockouts (source text not null, until bigint not null)'],
    /the key lockouts is /,
  ],
  ['a missing unique index', ['drop index "inboxOrder"'], /the index inboxOrder is missing/],
  [
    'an unknown unique index',
    ['create unique index "oneName" on people (name)'],
    /the index oneName is unknown/,
  ],
  [
    'a constraint',
    [
      'drop table lockouts',
      'create table lockouts (source text primary key not null, until bigint not null check (until > 0))',
    ],
    /the constraint lockouts\.\w+ is unknown/,
  ],
];

/** Databases of this version, and how to change and read them from outside. */
const engines = [
  {
    name: 'SQLite',
    isThere: true,
    make: async () => {
      const dataDir = aFolder();
      const run = async (sql: string) => {
        const file = new BetterSqlite3(join(dataDir, 'parley.db'));
        const statement = file.prepare<[], Record<string, unknown>>(sql);
        try {
          if (statement.reader) return statement.all();
          statement.run();
          return [];
        } finally {
          file.close();
        }
      };
      return { settings: { kind: 'sqlite', dataDir } as StoreSettings, dialect: 'sqlite' as const, run };
    },
  },
  {
    name: 'PostgreSQL',
    isThere: databaseServer !== undefined,
    make: async () => {
      const { url, read } = await makeDatabase(onTestFinished);
      return {
        settings: { kind: 'postgres', url } as StoreSettings,
        dialect: 'postgres' as const,
        run: read,
      };
    },
  },
] as const;

it('checks each migration against its fingerprint, so that changing a released one fails', () => {
  const adds = Object.values(migrations).map((step) => step.adds);
  const fingerprints = adds.map((_, at) => fingerprintOf(expectedCatalog(adds.slice(0, at + 1))));
  expect(fingerprints).toEqual(Object.values(migrations).map(({ fingerprint }) => fingerprint));
});

for (const { name, isThere, make } of engines)
  describe.skipIf(!isThere)(`the schema on ${name}`, () => {
    const made = async () => {
      const database = await make();
      await (await openStore(database.settings)).close();
      return database;
    };

    it('creates a schema that matches the fingerprint of the released migrations', async () => {
      const { run, dialect } = await made();
      const steps = Object.values(migrations).map(({ adds }) => adds);
      const found = await readCatalog(run as AskCatalog, dialect, steps);
      expect([...found].sort()).toEqual([...expectedCatalog(steps)].sort());
      expect(fingerprintOf(found)).toBe(migrations[migrationNames.at(-1) ?? '']?.fingerprint);
    });

    it.each(alterations)(
      'refuses a schema with %s at each start and in doctor, and leaves it unchanged',
      async (_, sql, finding) => {
        const { settings, run } = await made();
        for (const statement of sql) await run(statement);
        await expect(openStore(settings)).rejects.toMatchObject({
          code: 'store_unavailable',
          retry: { kind: 'never' },
          message: expect.stringMatching(finding),
        });
        const report = await inspectStore(settings);
        expect(report).toMatchObject({
          kind: 'found',
          misfits: expect.arrayContaining([expect.stringContaining('the ')]),
        });
      },
    );

    it('restores a missing or changed plain index', async () => {
      const { settings, run, dialect } = await made();
      await run('drop index "outboxRun"');
      await run('drop index "inboxOpen"');
      await run(`create index "inboxOpen" on inbox ("laneKey") where "state" = 'held'`);
      const differences = () => differencesOf(run as AskCatalog, dialect, { taken: migrationNames });
      expect((await differences()).indexes.map((index) => index.name)).toEqual(['inboxOpen', 'outboxRun']);
      await (await openStore(settings)).close();
      expect(await differences()).toEqual({ misfits: [], indexes: [] });
    });

    it('accepts foreign tables and plain indexes in its database', async () => {
      const { settings, run } = await made();
      await run('create table strange (id text primary key)');
      await run('create index "ownIndex" on inbox ("senderId")');
      await (await openStore(settings)).close();
      expect(await run('select * from strange')).toEqual([]);
    });

    it('accepts additions of a later version, but no omissions', async () => {
      const { settings, run } = await made();
      await run('alter table inbox add column colour text');
      await run(`insert into kysely_migration values ('0099-add-colour', '2030-01-01')`);
      await (await openStore(settings)).close();
      await run('alter table inbox drop column "answer"');
      await expect(openStore(settings)).rejects.toThrow(/the column inbox\.answer is missing\./);
    });
  });
