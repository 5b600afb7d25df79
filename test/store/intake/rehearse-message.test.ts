import BetterSqlite3 from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import { expect, it } from 'vitest';
import { messageId } from '../../../src/contracts/ids.ts';
import { storeSetup } from '../../../src/steps.ts';
import type { Store } from '../../../src/store/base/command.ts';
import { recordDelivery } from '../../../src/store/delivery/claim-delivery.ts';
import { acceptBatch } from '../../../src/store/intake/accept-batch.ts';
import { rehearsalOver, rehearseMessage } from '../../../src/store/intake/rehearse-message.ts';
import type { ClaimTerms } from '../../../src/store/lanes/claim-due.ts';
import { migrate } from '../../../src/store/migrate.ts';
import { cacheStatements } from '../../../src/store/sqlite/cached-database.ts';
import { directDatabase } from '../../../src/store/sqlite/direct-database.ts';
import { noticesFor } from '../../../src/texts/notices.ts';
import { account, aMessage, aWorker, demoOnly, framing, holder } from '../builders.ts';
import { counted, rate } from '../call-builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { everything } from '../everything.ts';

const terms: ClaimTerms = {
  ...{ holder, leaseMs: 60_000, framing, maxAttempts: 3, class: 'main', newRunIds: ['run'] },
  ...{ models: demoOnly, titleModels: demoOnly, rates: { demo: rate } },
};

describeEachDatabase('a rehearsed message', (open) => {
  it('comes to its end and leaves nothing behind', async () => {
    const store = open();
    const before = await store.read(everything, {});
    for (const _ of ['first', 'again'])
      await expect(store.write(rehearseMessage, terms)).rejects.toThrow(rehearsalOver);
    expect(await store.read(everything, {})).toBe(before);
  });
});

it('leaves the first message nothing to prepare', async ({ onTestFinished }) => {
  const { store, sqlite, asked } = await openListening();
  onTestFinished(() => void sqlite.close());
  const epoch = await aWorker(store).hold();
  sqlite.exec('savepoint rehearsal');
  await expect(store.write(rehearseMessage, terms)).rejects.toThrow(rehearsalOver);
  sqlite.exec('rollback to rehearsal; release rehearsal');
  expect(asked.length).toBeGreaterThan(30);

  asked.length = 0;
  await sayAndAnswer(store, epoch);
  expect(asked).toEqual([]);
});

/** A store in memory, and the statements that it has prepared. */
async function openListening() {
  const sqlite = new BetterSqlite3(':memory:');
  await migrate(new Kysely({ dialect: new SqliteDialect({ database: cacheStatements(sqlite) }) }));
  const asked: string[] = [];
  const prepare = (text: string) => {
    asked.push(text);
    return sqlite.prepare(text);
  };
  const database = directDatabase(Object.assign(Object.create(sqlite) as typeof sqlite, { prepare }));
  const setup = storeSetup(noticesFor('en'));
  const tx = () =>
    ({ ...database, now: Date.now(), dialect: 'sqlite', advanceNow: undefined, ...setup }) as const;
  const store: Store = {
    write: (command, input) => command.run(tx(), input),
    writeAlong: () => undefined,
    read: (query, input) => query.run(tx(), input),
    broken: new Promise(() => undefined),
    close: async () => undefined,
  };
  return { store, sqlite, asked };
}

async function sayAndAnswer(store: Store, epoch: number): Promise<void> {
  const worker = aWorker(store);
  const proposals = [{ ...aMessage({ conversation: 'anna', text: 'hi' }), standing: 'none' } as const];
  const links = { peers: ['test:ann'], identities: [], accounts: [] };
  const arrival = { account, epoch, holder, proposals, links, claims: terms, cursor: '1' };
  const [run] = (await store.write(acceptBatch, arrival)).runs;
  if (!run) throw new Error('nothing was claimed');
  const policy = { holder, leaseMs: 60_000, repeatSafeMs: 0, resendUnknown: false };
  const { claimed } = await worker.answer(run, 'hello', { sender: policy, modelCalls: [counted(run)] });
  if (claimed?.delivery.kind !== 'part') throw new Error('nothing is to be sent');
  const { conversationKey, delivery } = claimed;
  const settling = { ...policy, conversationKey, epoch: delivery.epoch, partKey: delivery.part.key };
  const result = { kind: 'sent', receipts: [messageId('m1')] } as const;
  await store.write(recordDelivery, { ...settling, result, claimsNext: true });
}
