import { expect, it } from 'vitest';
import { messageId } from '../../../src/contracts/ids.ts';
import type { Store } from '../../../src/store/base/command.ts';
import { recordDelivery } from '../../../src/store/delivery/claim-delivery.ts';
import { acceptBatch } from '../../../src/store/intake/accept-batch.ts';
import { rehearsalOver, rehearseMessage } from '../../../src/store/intake/rehearse-message.ts';
import type { ClaimTerms } from '../../../src/store/lanes/claim-due.ts';
import { openMemoryStore } from '../../support/memory-store.ts';
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

/** Opens an in-memory store and records the statements that it prepares. */
async function openListening() {
  const asked: string[] = [];
  const opened = await openMemoryStore((sqlite) => (text) => {
    asked.push(text);
    return sqlite.prepare(text);
  });
  return { ...opened, asked };
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
