import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { makeBackup } from '../../src/backup/make-backup.ts';
import { restoreBackup } from '../../src/backup/restore.ts';
import { endPartsAfterRestore } from '../../src/store/delivery/restore.ts';
import { importSqlite } from '../../src/store/postgres/import-sqlite.ts';
import { databaseServer, makeDatabase } from '../e2e/own-database.ts';
import { openStore } from '../support/open-store.ts';
import { actAndDie, aDataFolder, runSql } from './backup-folder.ts';

describe.skipIf(databaseServer === undefined)('PostgreSQL', () => {
  async function aDatabase() {
    const database = await makeDatabase(onTestFinished);
    await (await openStore({ kind: 'postgres', url: database.url, poolSize: 1 })).close();
    const sources = async () => {
      const rows = await database.read('select source from lockouts order by source');
      return rows.map(({ source }) => source);
    };
    return { ...database, sources };
  }

  it('restores a backup in one transaction and keeps the replaced state in the database', async () => {
    const { url, read, sources } = await aDatabase();
    const dataDir = await aDataFolder();
    await read(`insert into lockouts (source, until) values ('first', 1), ('umlaut ä ☃', 2)`);
    const backup = await makeBackup({ dataDir, databaseUrl: url, settings: [] });
    expect(backup.manifest.database).toMatchObject({ kind: 'postgres', rows: { lockouts: 2 } });
    await read(`delete from lockouts`);
    await read(`insert into lockouts (source, until) values ('second', 1)`);
    const { keptSchema } = await restoreBackup({ dataDir, databaseUrl: url, backup });
    expect(await sources()).toEqual(['first', 'umlaut ä ☃']);
    expect(await read(`select source from ${keptSchema}.lockouts`)).toEqual([{ source: 'second' }]);
    // The schema is complete, and the next start learns of the restore, whatever its data folder.
    const store = await openStore({ kind: 'postgres', url, poolSize: 1 });
    expect(await store.write(endPartsAfterRestore, {})).toEqual({ madeAt: backup.manifest.madeAt, parts: 0 });
    await store.close();
  });

  it('changes nothing if a backup lacks rows or another connection uses the database', async () => {
    const { url, read, sources } = await aDatabase();
    const dataDir = await aDataFolder();
    const backup = await makeBackup({ dataDir, databaseUrl: url, settings: [] });
    await read(`insert into lockouts (source, until) values ('now', 1)`);
    const { manifest } = backup;
    const lying = { ...manifest, database: { ...manifest.database, rows: { lockouts: 7 } } };
    await expect(
      restoreBackup({ dataDir, databaseUrl: url, backup: { ...backup, manifest: lying } }),
    ).rejects.toThrow(/psql failed .*table lockouts is missing rows/);
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    await expect(restoreBackup({ dataDir, databaseUrl: url, backup })).rejects.toThrow(
      'Another connection uses',
    );
    await other.end();
    expect(await sources()).toEqual(['now']);
    const store = await openStore({ kind: 'postgres', url, poolSize: 1 });
    expect(await store.write(endPartsAfterRestore, {})).toBeUndefined();
    await store.close();
  });

  it('changes nothing if a restore is killed or its dump is cut short', async () => {
    const { url, read, sources } = await aDatabase();
    const dataDir = await aDataFolder();
    const { path, manifest } = await makeBackup({ dataDir, databaseUrl: url, settings: [] });
    await read(`insert into lockouts (source, until) values ('now', 1)`);
    const inUse = () =>
      read(`select query from pg_stat_activity where datname = current_database()
        and pid <> pg_backend_pid() and backend_type = 'client backend'`);
    const expectUnchanged = async () => {
      await expect.poll(inUse).toEqual([]);
      expect(await sources()).toEqual(['now']);
      expect(await read(`select nspname from pg_namespace where nspname like 'parley%'`)).toEqual([]);
    };
    const tool = join(dataDir, 'tools/pg_restore');
    const theDumpEnds = (how: string) => {
      const half = `create table public.restores ("madeAt" text primary key);
create table public.lockouts (source text, until bigint);
copy public.lockouts (source, until) from stdin;
half\t1`;
      writeFileSync(tool, `#!/bin/sh\ncat <<'END'\n${half}\nEND\n${how}\n`, { mode: 0o755 });
    };
    mkdirSync(join(dataDir, 'tools'));
    vi.stubEnv('PATH', `${join(dataDir, 'tools')}:${process.env.PATH}`);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });

    theDumpEnds(`touch "$0.ran"; exec cat`);
    await actAndDie(['restore', dataDir, '0', path, url], async () => {
      // Until it reads the dump, the restore requires that nobody else uses the database.
      await expect.poll(() => existsSync(`${tool}.ran`)).toBe(true);
      await expect.poll(inUse).toMatchObject([{ query: expect.stringMatching(/^copy /) }]);
    });
    await expectUnchanged();

    theDumpEnds(`printf '%s\\n' '\\.'; exit 1`);
    const short = { ...manifest, database: { ...manifest.database, rows: { lockouts: 1 } } };
    await expect(
      restoreBackup({ dataDir, databaseUrl: url, backup: { path, manifest: short } }),
    ).rejects.toThrow('pg_restore failed (1)');
    await expectUnchanged();
  });

  it('imports every row of a SQLite file, or none', async () => {
    const { url, read, sources } = await aDatabase();
    const dataDir = await aDataFolder();
    runSql(
      dataDir,
      `insert into lockouts (source, until) values ('line' || char(10) || '"quoted" ☃', 9007199254740991)`,
    );
    const file = join(dataDir, 'parley.db');
    expect(await importSqlite(file, url)).toMatchObject({ lockouts: 2, lanes: 0 });
    expect(await sources()).toEqual(['first', 'line\n"quoted" ☃']);
    expect(await read('select max(until) as until from lockouts')).toEqual([{ until: '9007199254740991' }]);
    await expect(importSqlite(file, url)).rejects.toThrow(/already has rows in lockouts/);
    runSql(dataDir, `update lockouts set source = 'nul' || char(0) where source = 'first'`);
    await read('delete from lockouts');
    runSql(dataDir, `insert into boots (id, folder, "startedAt", role) values ('b', 'f', 1, 'all')`);
    await expect(importSqlite(file, url)).rejects.toThrow(
      /row of lockouts can't be copied.*Nothing was changed/,
    );
    expect(await read('select id from boots')).toEqual([]);
  });
});
