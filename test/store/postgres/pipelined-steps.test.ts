import { sql } from 'kysely';
import { describe, it } from 'vitest';
import { ParleyError } from '../../../src/contracts/errors.ts';
import type { StepTx, Store, StoreCommand } from '../../../src/store/base/command.ts';
import { prepared, type QueryParams } from '../../../src/store/base/prepared.ts';
import { ensureRow, insertRow } from '../../../src/store/base/row-access.ts';
import { acceptBatch } from '../../../src/store/intake/accept-batch.ts';
import { databaseServer, makeDatabase } from '../../e2e/own-database.ts';
import { openStore } from '../../support/open-store.ts';
import { aConversation } from '../a-conversation.ts';
import { account as botAccount, holder, unique } from '../builders.ts';

const anchors = prepared((db, of: QueryParams<{ account: string }>) =>
  db.selectFrom('anchors').selectAll().where('account', '=', of.account),
);
const moveAnchor = prepared((db, of: QueryParams<{ account: string; anchor: string }>) =>
  db.updateTable('anchors').set({ anchor: of.anchor }).where('account', '=', of.account),
);
const row = (account: string, conversation = 'c') => ({ account, conversation, anchor: '0' });

/** Runs `run` as its own step. */
function inStep<Output>(store: Store, run: (tx: StepTx) => Promise<Output>): Promise<Output> {
  const step: StoreCommand<undefined, Output> = { name: unique('step'), run };
  return store.write(step, undefined);
}

// SQLite runs a statement as soon as it is requested.
describe.skipIf(databaseServer === undefined)('a step with pipelined writes', () => {
  it('applies pipelined writes in order, before the next read and before the commit', async ({
    onTestFinished,
    expect,
  }) => {
    const { store } = await aStore(onTestFinished);
    const account = unique('account');
    const seen = await inStep(store, async (tx) => {
      await insertRow(tx, 'anchors', row(account));
      await moveAnchor.post(tx, { account, anchor: '1' });
      const inside = await anchors.first(tx, { account });
      for (const anchor of ['2', '3']) await moveAnchor.post(tx, { account, anchor });
      return inside?.anchor;
    });
    expect(seen).toBe('1');
    expect(await inStep(store, (tx) => anchors.all(tx, { account }))).toMatchObject([{ anchor: '3' }]);
  });

  it('stores texts of every length unchanged', async ({ onTestFinished, expect }) => {
    const { store } = await aStore(onTestFinished, { poolSize: 1 });
    const texts = ['', 'a', 'ä€😀'.repeat(20_000), 'b', 'c'.repeat(16_384), "'\\\n"];
    const accounts = texts.map(() => unique('account'));
    const seen = await inStep(store, async (tx) => {
      for (const [at, anchor] of texts.entries())
        await insertRow(tx, 'anchors', { ...row(accounts[at] ?? ''), anchor });
      return Promise.all(accounts.map((account) => anchors.one(tx, { account })));
    });
    expect(seen.map(({ anchor }) => anchor)).toEqual(texts);
  });

  it('fails a step as a whole with its first failing write', async ({ onTestFinished, expect }) => {
    const { store } = await aStore(onTestFinished);
    const account = unique('account');
    const twice = (last: (tx: StepTx) => Promise<unknown>) =>
      inStep(store, async (tx) => {
        await insertRow(tx, 'anchors', row(account, 'kept?'));
        await insertRow(tx, 'anchors', row(account));
        await insertRow(tx, 'anchors', row(account));
        return last(tx);
      });
    const { rejects } = expect(twice(async () => 'done'));
    await rejects.toThrow('duplicate key');
    await expect(twice((tx) => anchors.all(tx, { account }))).rejects.toThrow('duplicate key');
    await expect(twice((tx) => anchors.all(tx, { account }).catch(() => []))).rejects.toThrow();
    expect(await inStep(store, (tx) => anchors.all(tx, { account }))).toEqual([]);
  });

  it('fails a step with the error of the failing write, not of a later skipped statement', async ({
    onTestFinished,
    expect,
  }) => {
    const { store } = await aStore(onTestFinished);
    const account = unique('account');
    await inStep(store, (tx) => insertRow(tx, 'anchors', row(account)));
    const again = prepared((db, of: QueryParams<{ account: string }>) =>
      db.insertInto('anchors').values({ account: of.account, conversation: 'c', anchor: '0' }),
    );
    // The failing one takes more microtasks to report than the one after it.
    const deep = async (tx: StepTx) => {
      const late = async () => again.run(tx, { account });
      return await (async () => await late())();
    };
    const together = inStep(store, (tx) => {
      // Both answers have arrived when the first is read.
      setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100));
      return Promise.all([deep(tx), anchors.all(tx, { account })]);
    });
    await expect(together).rejects.toThrow('duplicate key');
  });

  it('rejects a value that is neither a text nor a number', async ({ onTestFinished, expect }) => {
    const { store } = await aStore(onTestFinished, { poolSize: 1 });
    const account = unique('account');
    const refused = inStep(store, async (tx) => {
      await insertRow(tx, 'anchors', row(account));
      await sql`select ${{ not: 'a text' }}`.execute(tx.db);
    });
    await expect(refused).rejects.toThrow('texts or numbers');
    expect(await inStep(store, (tx) => anchors.all(tx, { account }))).toEqual([]);
  });

  it('frees the connection of a failed step, whatever error it throws', async ({
    onTestFinished,
    expect,
  }) => {
    const { store } = await aStore(onTestFinished, { poolSize: 1 });
    const account = unique('account');
    await inStep(store, (tx) => insertRow(tx, 'anchors', row(account)));
    const refused = inStep(store, async (tx) => {
      // PostgreSQL skips the second, which it has never seen.
      await insertRow(tx, 'anchors', row(account));
      await anchors
        .all(tx, { account })
        .catch(() => Promise.reject(new ParleyError('stale_epoch', 'refused')));
    });
    await expect(refused).rejects.toThrow('refused');
    expect(await inStep(store, (tx) => anchors.all(tx, { account }))).toHaveLength(1);
  });

  it('rejects writes of a step once a part of it has failed', async ({ onTestFinished, expect }) => {
    const { store } = await aStore(onTestFinished, { poolSize: 1 });
    const account = unique('account');
    const late = Promise.withResolvers<unknown>();
    const goesOn = async (tx: StepTx) => {
      await anchors.all(tx, { account });
      await next;
      await insertRow(tx, 'anchors', row(account)).catch(late.resolve);
    };
    const fails = async () => Promise.reject(new ParleyError('stale_epoch', 'refused'));
    const refused = inStep(store, (tx) => Promise.all([goesOn(tx), fails()]));
    const next = refused.catch(() => undefined);
    await expect(refused).rejects.toThrow('refused');
    await inStep(store, () => late.promise);
    expect(await inStep(store, (tx) => anchors.all(tx, { account }))).toEqual([]);
  });

  it('knows the time before and after the first statement of a step', async ({ onTestFinished, expect }) => {
    const { store } = await aStore(onTestFinished);
    const step: StoreCommand<undefined, readonly number[]> = {
      name: unique('step'),
      run: async (tx) => {
        const before = tx.now;
        await anchors.all(tx, { account: '' });
        return [before, tx.now];
      },
    };
    for (const _ of ['learns', 'knows']) {
      const [before, after] = await store.write(step, undefined);
      expect(before).toBe(after);
      expect(before).toBeGreaterThan(1_700_000_000_000);
    }
  });
});

describe.skipIf(databaseServer === undefined)('a read sent together with a lock', () => {
  it('reads what was committed while a step waited for its lock', async ({ onTestFinished, expect }) => {
    const { store, sql: beside } = await aStore(onTestFinished);
    const { worker, saying, begin, answer } = aConversation(store);
    const run = await begin('first');
    const second = saying('second');
    const go = Promise.withResolvers<void>();
    const stored = Promise.withResolvers<void>();
    const input = { account: botAccount, epoch: await worker.hold(), holder, proposals: [second] };
    const slowly = inStep(store, async (tx) => {
      await acceptBatch.run(tx, input);
      stored.resolve();
      await go.promise;
    });
    await stored.promise;
    const answered = answer(run, 'hello');
    const waits = `select 1 from pg_stat_activity
      where wait_event_type = 'Lock' and datname = current_database()`;
    while ((await beside(waits)).length === 0);
    go.resolve();
    await slowly;
    expect(await answered).toMatchObject({ steers: [{ parts: [{ data: { text: 'second' } }] }] });
  });
});

describe.skipIf(databaseServer === undefined)('a statement that PostgreSQL keeps prepared', () => {
  it('plans a prepared statement again as its table grows', async ({ onTestFinished, expect }) => {
    const { store, sql: beside } = await aStore(onTestFinished, { poolSize: 1 });
    // Statistics of an almost empty table, for which a full scan is the cheapest plan.
    await inStep(store, (tx) => insertRow(tx, 'anchors', row('first')));
    await beside('vacuum analyze anchors');
    const look = () => inStep(store, (tx) => anchors.all(tx, { account: 'first' }));
    const plan = () => inStep(store, explainAnchors);
    for (let n = 0; n < 12; n++) await look();
    expect(await plan()).toContain('Seq Scan');
    await beside(`insert into anchors select 'a' || n, 'c', '0' from generate_series(1, 20000) n`);
    for (let n = 0; n < 100; n++) await look();
    expect(await plan()).toContain('Index');
  });

  it('keeps using a prepared statement when a newer version has added a column', async ({
    onTestFinished,
    expect,
  }) => {
    const { store, sql: beside } = await aStore(onTestFinished);
    const account = unique('account');
    const look = () => inStep(store, (tx) => anchors.all(tx, { account }));
    await inStep(store, (tx) => ensureRow(tx, 'anchors', row(account)));
    await look();
    await beside('alter table anchors add column newer text');
    expect(await look()).toMatchObject([{ account, anchor: '0' }]);
    expect(
      await store.read({ query: 'look', run: (tx) => anchors.all(tx, { account }) }, undefined),
    ).toHaveLength(1);
  });
});

async function aStore(atEnd: (end: () => Promise<void>) => void, { poolSize = 10 } = {}) {
  const { url, read } = await makeDatabase(atEnd);
  const store = await openStore({ kind: 'postgres', url, poolSize });
  atEnd(store.close);
  return { store, sql: read };
}

/** Returns the plan that this connection keeps for the query. */
async function explainAnchors({ db }: StepTx): Promise<string> {
  const kept = sql<{ name: string }>`
    select name from pg_prepared_statements where statement like 'select * from "anchors"%'`;
  const [statement] = (await kept.execute(db)).rows;
  const explained = await sql`explain execute ${sql.id(statement?.name ?? '')}('first')`.execute(db);
  return JSON.stringify(explained.rows);
}
