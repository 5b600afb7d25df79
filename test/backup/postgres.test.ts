import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeBackup } from '../../src/backup/make-backup.ts';
import { restoreBackup } from '../../src/backup/restore.ts';
import { importSqlite } from '../../src/store/postgres/import-sqlite.ts';
import { databaseServer, makeDatabase } from '../e2e/own-database.ts';
import { openStore } from '../support/open-store.ts';
import { aDataFolder, runSql } from './backup-folder.ts';

describe.skipIf(databaseServer === undefined)('on PostgreSQL', () => {
  async function aDatabase() {
    const database = await makeDatabase(onTestFinished);
    await (await openStore({ kind: 'postgres', url: database.url, poolSize: 1 })).close();
    const sources = async () => {
      const rows = await database.read('select source from lockouts order by source');
      return rows.map(({ source }) => source);
    };
    return { ...database, sources };
  }

  it('a backup comes back in one transaction, and what it replaces stays in the database', async () => {
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
    // The schema is whole: the next start finds nothing to do.
    await (await openStore({ kind: 'postgres', url, poolSize: 1 })).close();
  });

  it('a backup that lacks rows changes nothing', async () => {
    const { url, read, sources } = await aDatabase();
    const dataDir = await aDataFolder();
    const backup = await makeBackup({ dataDir, databaseUrl: url, settings: [] });
    await read(`insert into lockouts (source, until) values ('now', 1)`);
    const { manifest } = backup;
    const lying = { ...manifest, database: { ...manifest.database, rows: { lockouts: 7 } } };
    await expect(
      restoreBackup({ dataDir, databaseUrl: url, backup: { ...backup, manifest: lying } }),
    ).rejects.toThrow(/psql failed .*table lockouts lacks rows/);
    expect(await sources()).toEqual(['now']);
  });

  it('takes over every row of a SQLite file, or none', async () => {
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
    await expect(importSqlite(file, url)).rejects.toThrow(/has rows in lockouts already/);
    runSql(dataDir, `update lockouts set source = 'nul' || char(0) where source = 'first'`);
    await read('delete from lockouts');
    runSql(dataDir, `insert into boots (id, folder, "startedAt", role) values ('b', 'f', 1, 'all')`);
    await expect(importSqlite(file, url)).rejects.toThrow(
      /row of lockouts can't be copied.*Nothing was changed/,
    );
    expect(await read('select id from boots')).toEqual([]);
  });
});
