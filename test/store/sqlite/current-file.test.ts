import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { expect, it } from 'vitest';
import { dismissNotice } from '../../../src/store/alerts/alert.ts';
import { readRestoreMark } from '../../../src/store/delivery/restore.ts';
import { currentStore } from '../../../src/store/readable-store.ts';
import { openStore } from '../../support/open-store.ts';
import { aFolder } from '../../support/own-folder.ts';

/** A folder with a database that nobody has open. */
async function aDatabase(): Promise<string> {
  const dataDir = aFolder();
  await (await openStore({ kind: 'sqlite', dataDir })).close();
  return dataDir;
}

it('reads a current file without the writer, writes nothing and leaves nothing behind', async () => {
  const dataDir = await aDatabase();
  const store = await currentStore(dataDir);
  expect(await store?.read(readRestoreMark, {})).toEqual(expect.any(String));
  await expect(store?.write(dismissNotice, { id: 'any' } as never)).rejects.toThrow('opened for reading');
  await store?.close();
  expect(readdirSync(dataDir).filter((name) => name.startsWith('parley.db'))).toEqual(['parley.db']);
});

it.each([
  ['that lacks a step', `delete from kysely_migration where name > '0001'`],
  ['that another version has changed', `insert into kysely_migration values ('9999-change', '')`],
  ['that lacks a column', 'alter table lanes rename column holder to other'],
])('leaves a file %s to those who open it in full', async (_what, change) => {
  const dataDir = await aDatabase();
  const connection = new BetterSqlite3(join(dataDir, 'parley.db'));
  connection.exec(change);
  connection.close();
  expect(await currentStore(dataDir)).toBeUndefined();
});

it('finds no store in a folder without a database', async () => {
  expect(await currentStore(aFolder())).toBeUndefined();
});
