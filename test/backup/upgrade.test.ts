import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { backupsIn, listBackups, readManifest } from '../../src/backup/manifest.ts';
import { restoreBackup } from '../../src/backup/restore.ts';
import { migrationNames } from '../../src/store/migrate.ts';
import { openStore } from '../support/open-store.ts';
import { actAndDie, aDataFolder, readSql, runSql, tornPairs, underLoad } from './backup-folder.ts';
import { dieInChange, laterStep, openLater } from './later-version.ts';

const steps = (dataDir: string) => readSql(dataDir, 'select name from kysely_migration order by name');
const own = migrationNames.map((name) => ({ name }));

it('backs up before a schema change, which the previous version can read and one command undoes', async () => {
  const dataDir = await aDataFolder();
  const made: string[] = [];
  await (await openLater(dataDir, (path) => made.push(path))).close();
  expect(steps(dataDir)).toEqual([...own, { name: laterStep }]);
  expect(made).toEqual([expect.stringContaining('before-0100-add-notes-')]);
  // Already up to date: nothing changes, so no backup is made.
  await (await openLater(dataDir, (path) => made.push(path))).close();
  expect(made).toHaveLength(1);

  runSql(dataDir, `insert into lockouts (source, until) values ('later', 2)`);
  await (await openStore({ kind: 'sqlite', dataDir })).close();
  expect(readSql(dataDir, 'select count(*) as count from lockouts')).toEqual([{ count: 2 }]);

  const [path = ''] = made;
  const manifest = await readManifest(path);
  expect(manifest).toMatchObject({ kind: 'before-migration', database: { steps: migrationNames } });
  if (manifest) await restoreBackup({ dataDir, backup: { path, manifest } });
  expect(steps(dataDir)).toEqual(own);
  await (await openStore({ kind: 'sqlite', dataDir })).close();
});

it('refuses a schema that a later version did more to than add', async () => {
  const dataDir = await aDataFolder();
  runSql(dataDir, "insert into kysely_migration values ('0002-rename-lanes', '2030-01-01')");
  await expect(openStore({ kind: 'sqlite', dataDir })).rejects.toThrow(/Another version .*0002-rename-lanes/);
});

it('keeps the schema if it is killed during the change, and succeeds the next time', async () => {
  const dataDir = await aDataFolder();
  await underLoad(dataDir);
  writeFileSync(join(dataDir, dieInChange), '');
  expect(await actAndDie(['change', dataDir])).toBeUndefined();
  rmSync(join(dataDir, dieInChange));
  expect(steps(dataDir)).toEqual(own);
  expect(readSql(dataDir, `select name from sqlite_master where name = 'notes'`)).toEqual([]);
  expect(await listBackups(backupsIn(dataDir))).toMatchObject([{ manifest: { kind: 'before-migration' } }]);
  await (await openLater(dataDir)).close();
  expect(steps(dataDir)).toHaveLength(own.length + 1);
  expect(tornPairs(dataDir)).toEqual([]);
});
