import BetterSqlite3 from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Store } from '../../src/store/command.ts';
import { claimDelivery, settleDelivery } from '../../src/store/delivery/deliver.ts';
import { readSweep } from '../../src/store/lanes/sweep.ts';
import { migrate } from '../../src/store/migrate.ts';
import { cacheStatements } from '../../src/store/sqlite/cached-database.ts';
import type { Tables } from '../../src/store/tables.ts';
import { aLane, aMessage, aWorker, holder } from './builders.ts';

const sqlite = new BetterSqlite3(':memory:');
const asked = new Map<string, readonly unknown[]>();
const db = new Kysely<Tables>({
  dialect: new SqliteDialect({ database: cacheStatements(sqlite) }),
  log: ({ query }) => {
    asked.set(query.sql, query.parameters);
  },
});
const tx = () => ({ db, now: Date.now(), dialect: 'sqlite' }) as const;
const store: Store = {
  write: (command, input) => command.run(tx(), input),
  writeAlong: () => undefined,
  read: (query, input) => query.run(tx(), input),
  broken: new Promise(() => undefined),
  close: () => db.destroy(),
};

beforeAll(() => migrate(db));
afterAll(() => db.destroy());

it('reads what is open without reading what is over', async () => {
  asked.clear();
  await sayAndAnswer('anna');
  await store.read(readSweep, {});
  expect(asked.size).toBeGreaterThan(30);

  const plans = [...asked].flatMap(([sql, parameters]) =>
    sqlite
      .prepare(`explain query plan ${sql}`)
      .all(...parameters)
      .map((row) => ({ sql, detail: (row as { readonly detail: string }).detail })),
  );
  const isWhole = /^SCAN (?!.*USING (?:COVERING )?INDEX (?:inboxOpen|inboxDue|outboxOpen|lanesUnfinished))/;
  expect(plans.filter(({ detail }) => isWhole.test(detail))).toEqual([]);
  const openRows = plans.filter(({ sql }) => /^select[^;]*"state" in \('(?:held|pending)'/.test(sql));
  const ofOpenRows = openRows.filter(({ detail }) => /(?:SCAN|SEARCH) (?:inbox|outbox)\b/.test(detail));
  expect(ofOpenRows.length).toBeGreaterThan(5);
  for (const { detail } of ofOpenRows) expect(detail).toMatch(/INDEX (?:inboxOpen|inboxDue|outboxOpen)/);
});

/** One message from its arrival to its delivered answer, by way of every step it takes. */
async function sayAndAnswer(conversation: string): Promise<void> {
  const worker = aWorker(store);
  await worker.accept(aMessage({ conversation, text: 'hello' }));
  const run = await worker.claimRun(aLane(conversation).key);
  const { effects } = await worker.answer(run, 'hello to you');
  const [conversationKey = ''] = effects.deliveries;
  const policy = { holder, leaseMs: 60_000, repeatSafeMs: 0, resendUnknown: false, conversationKey };
  const delivery = await store.write(claimDelivery, policy);
  if (delivery.kind !== 'part') throw new Error(`nothing to deliver: ${delivery.kind}`);
  const { epoch, part } = delivery;
  const result = { kind: 'sent', receipts: [] } as const;
  await store.write(settleDelivery, { ...policy, epoch, partKey: part.key, result, claimsNext: true });
}
