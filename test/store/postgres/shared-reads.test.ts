import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { StoreQuery } from '../../../src/store/base/command.ts';
import { databaseServer } from '../../e2e/own-database.ts';
import { countRoundTrips } from '../../support/round-trips.ts';
import { oneDatabase } from './one-database.ts';

const divide: StoreQuery<number, number | undefined> = {
  query: 'divide',
  isShared: true,
  run: async ({ db }, by) => {
    const { rows } = await sql<{ found: number }>`select 6 / ${by}::int as found`.execute(db);
    return rows[0]?.found;
  },
};

// SQLite has a separate connection for reads, on which they run immediately.
describe.skipIf(databaseServer === undefined)('concurrent reads', () => {
  const opened = oneDatabase();
  const read = (by: number) => opened.store?.read(divide, by);

  it('sends concurrent reads in one round trip', async () => {
    await read(1);
    const found: unknown[] = [];
    const trips = await countRoundTrips(async () => {
      found.push(...(await Promise.all([1, 2, 3].map(read))));
    });
    expect(found).toEqual([6, 3, 2]);
    expect(trips).toBe(1);
  });

  it('fails each of several concurrent reads separately', async () => {
    const [good, bad, behind] = await Promise.allSettled([1, 0, 2].map(read));
    expect(good).toMatchObject({ value: 6 });
    expect(bad).toMatchObject({ reason: { code: 'internal' } });
    expect(behind).toMatchObject({ value: 3 });
    expect(await read(3)).toBe(2);
  });
});
