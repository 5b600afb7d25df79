import { describe, expect, it } from 'vitest';
import { readOwnerRoute } from '../../../src/store/alerts/owner-route.ts';
import type { Store } from '../../../src/store/base/command.ts';
import { readUsage } from '../../../src/store/reads/read-usage.ts';
import { databaseServer, makeDatabase } from '../../e2e/own-database.ts';
import { openStore } from '../../support/open-store.ts';
import { aLane, aMessage, aRoute, aWorker } from '../builders.ts';
import { counted } from '../call-builders.ts';

const many = 5_000;

describe.skipIf(databaseServer === undefined)('reads among many rows', () => {
  it('reads the usage of a conversation without reading its calls and messages', async ({
    onTestFinished,
  }) => {
    const { url, read } = await makeDatabase(onTestFinished);
    const worked = await openStore({ kind: 'postgres', url });
    const worker = aWorker(worked);
    await worker.accept(aMessage({ conversation: 'c', text: 'hello' }));
    const run = await worker.claimRun(aLane('c').key);
    await worker.answer(run, 'hi', { modelCalls: [counted(run, { cost: 7 })] });
    await worked.close();
    await copyRows(read, 'inbox', `'id', 'i' || n, 'seq', n + 10, 'runId', 'r' || n`);
    await copyRows(read, 'modelCalls', `'runId', 'r' || n`);
    const { sessionId } = run;
    const asked = await readsOf({ url, read }, ['inbox', 'modelCalls'], (store) =>
      store.read(readUsage, { sessionId }),
    );
    expect(asked.answer).toMatchObject({ cost: 7, models: [{ calls: 1, cost: 7 }] });
    expect(asked.rows).toBe(0);
  });

  it("finds an owner's conversation without reading the lanes of others", async ({ onTestFinished }) => {
    const { url, read } = await makeDatabase(onTestFinished);
    const written = await openStore({ kind: 'postgres', url });
    const { accept } = aWorker(written);
    await accept(
      aMessage({ conversation: 'c', text: 'hello', sender: 'bob', item: { authority: 'member' } }),
    );
    await copyRows(read, 'lanes', `'key', 'lane' || n, 'lastActivityAt', one."lastActivityAt" + n`);
    await copyRows(read, 'inbox', `'id', 'i' || n, 'laneKey', 'lane' || n`);
    await accept(aMessage({ conversation: 'own', text: 'hello' }));
    await written.close();
    const { answer, rows } = await readsOf({ url, read }, ['lanes', 'inbox'], (store) =>
      store.read(readOwnerRoute, { owners: ['test:ann'] }),
    );
    expect(answer).toEqual(aRoute('own'));
    expect(rows).toBeLessThan(20);
  });
});

type Read = (sql: string) => Promise<readonly Record<string, unknown>[]>;

/** Copies a table's only row, with other values in some columns. */
async function copyRows(read: Read, table: string, values: string): Promise<void> {
  const copy = `jsonb_populate_record(null::"${table}", to_jsonb(one) || jsonb_build_object(${values}))`;
  await read(`insert into "${table}" select copy.* from (select * from "${table}" limit 1) as one,
    generate_series(1, ${many}) as n, ${copy} as copy; analyze "${table}"; select pg_stat_force_next_flush()`);
}

/** Returns the answer, and how many rows of the tables were read for it. */
async function readsOf<Answer>(
  { url, read }: { readonly url: string; readonly read: Read },
  tables: readonly string[],
  ask: (store: Store) => Promise<Answer>,
): Promise<{ readonly answer: Answer; readonly rows: number }> {
  const count = async () => {
    const [row] = await read(`select sum(seq_tup_read + idx_tup_fetch)::int as rows,
        (select xact_commit from pg_stat_database where datname = current_database())::int as commits
      from pg_stat_user_tables where relname in ('${tables.join("', '")}')`);
    return row as { rows: number; commits: number };
  };
  const before = await count();
  const store = await openStore({ kind: 'postgres', url });
  const answer = await ask(store).finally(() => store.close());
  // PostgreSQL counts them when the connection has ended.
  await expect.poll(async () => (await count()).commits).toBeGreaterThan(before.commits + 3);
  return { answer, rows: (await count()).rows - before.rows };
}
