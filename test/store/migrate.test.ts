import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { openStore } from '../support/open-store.ts';
import { aFolder } from '../support/own-folder.ts';
import { aStore } from '../support/own-store.ts';

/** Counts the commits in a write-ahead log: frames whose header has a database size (SQLite file format, 4.1). */
function countCommits(wal: Buffer): number {
  const [headerBytes, frameHeaderBytes] = [32, 24];
  const frameBytes = frameHeaderBytes + wal.readUInt32BE(8);
  let commits = 0;
  for (let at = headerBytes; at + frameBytes <= wal.length; at += frameBytes) {
    if (wal.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return commits;
}

it('creates the schema in one transaction, so that a crash leaves all of it or nothing', async () => {
  const { dataDir } = await aStore();
  expect(countCommits(await readFile(join(dataDir, 'parley.db-wal')))).toBe(1);
});

it('opens an up-to-date database again', async () => {
  const dataDir = aFolder();
  const first = await openStore({ kind: 'sqlite', dataDir });
  await first.close();
  const second = await openStore({ kind: 'sqlite', dataDir });
  await second.close();
});

it('refuses a database of an unknown version and leaves it unchanged', async () => {
  const dataDir = aFolder();
  const first = await openStore({ kind: 'sqlite', dataDir });
  await first.close();
  const file = new BetterSqlite3(join(dataDir, 'parley.db'));
  onTestFinished(() => void file.close());
  file.exec(
    "delete from kysely_migration where name <> '0001-schema'; update kysely_migration set name = '0001-initial'",
  );
  await expect(openStore({ kind: 'sqlite', dataDir })).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining(
      'Another version of Parley made this database (0001-initial). Start that',
    ),
  });
  expect(file.prepare('select name from kysely_migration').pluck().all()).toEqual(['0001-initial']);
});
