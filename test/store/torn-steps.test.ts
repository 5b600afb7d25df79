import { expect, it } from 'vitest';
import { messageId } from '../../src/contracts/ids.ts';
import type { Store } from '../../src/store/base/command.ts';
import type { Tables } from '../../src/store/base/tables.ts';
import { claimDelivery, recordDelivery } from '../../src/store/delivery/claim-delivery.ts';
import type { SendOutcome } from '../../src/store/delivery/end-part.ts';
import { acceptBatch } from '../../src/store/intake/accept-batch.ts';
import { aConversation } from './a-conversation.ts';
import { account, holder } from './builders.ts';
import { type Beside, describeEachDatabase } from './each-database.ts';
import { everything } from './everything.ts';

describeEachDatabase('a step that fails halfway', (open, beside) => {
  it('leaves nothing of a step that fails halfway, whichever table rejects the write', async () => {
    const store = open();
    const { conversationKey, worker, saying, claimRun, answer } = aConversation(store);
    const epoch = await worker.hold();
    const message = saying();
    const batch = { account, epoch, holder, proposals: [message], cursor: '7' };
    const policy = { holder, leaseMs: 10_000, repeatSafeMs: 0, resendUnknown: false };

    const accepts: Writes = ['accounts', 'ledger', 'lanes', 'inbox', 'sessions'];
    await tear({ store, beside, writes: accepts }, () => store.write(acceptBatch, batch));

    const takes: Writes = ['lanes', 'inbox', 'sessions', 'transcript', 'runs'];
    const run = await tear({ store, beside, writes: takes }, () => claimRun());

    const answers: Writes = ['conversations', 'lanes', 'inbox', 'sessions', 'transcript', 'runs', 'outbox'];
    await tear({ store, beside, writes: answers }, () => answer(run, 'hello'));

    const claim = { ...policy, conversationKey };
    const sends: Writes = ['conversations', 'outbox'];
    const sending = await tear({ store, beside, writes: sends }, () => store.write(claimDelivery, claim));
    if (sending.kind !== 'part') throw new Error('nothing is to be sent');

    const result: SendOutcome = { kind: 'sent', receipts: [messageId('m1')] };
    const settling = { ...claim, epoch: sending.epoch, partKey: sending.part.key, result, claimsNext: true };
    const marks: Writes = ['conversations', 'outbox', 'receipts'];
    await tear({ store, beside, writes: marks }, () => store.write(recordDelivery, settling));
  });
});

type Writes = readonly (keyof Tables)[];
type Scene = { readonly store: Store; readonly beside: Beside; readonly writes: Writes };

/** Tries the step while each table that it writes refuses in turn, and finally runs it undisturbed. */
async function tear<Output>({ store, beside, writes }: Scene, step: () => Promise<Output>): Promise<Output> {
  const before = await store.read(everything, {});
  for (const table of writes) {
    await refuse(beside, table);
    await expect(step(), `with ${table} refusing`).rejects.toThrow('torn');
    await admit(beside, table);
    expect(await store.read(everything, {}), `with ${table} refusing`).toBe(before);
  }
  return step();
}

async function refuse({ dialect, sql }: Beside, table: string): Promise<void> {
  if (dialect === 'postgres') {
    await sql(`create function torn() returns trigger as $$ begin raise 'torn'; end $$ language plpgsql;
      create trigger torn before insert or update on "${table}" for each row execute function torn()`);
    return;
  }
  for (const event of ['insert', 'update'])
    await sql(
      `create trigger torn_${event} before ${event} on "${table}" begin select raise(abort, 'torn'); end`,
    );
}

async function admit({ dialect, sql }: Beside, table: string): Promise<void> {
  if (dialect === 'postgres') return sql(`drop trigger torn on "${table}"; drop function torn()`);
  await sql('drop trigger torn_insert; drop trigger torn_update');
}
