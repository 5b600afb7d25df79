import { expect, it } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import { conversationId } from '../../../src/contracts/ids.ts';
import { acceptBatch } from '../../../src/store/intake/accept-batch.ts';
import { type Anchor, readAnchors } from '../../../src/store/intake/event.ts';
import { claimAccount, releaseAccount } from '../../../src/store/processes/accounts.ts';
import { aMessage, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('the anchors of an account', (open) => {
  const claim = async (account: string, holder = 'boot-1') => {
    const lease = await open().write(claimAccount, { account, holder, leaseMs: 60_000 });
    if (lease.kind !== 'held') throw new Error('the account is busy');
    return { account, holder, epoch: lease.epoch };
  };
  type Lease = Awaited<ReturnType<typeof claim>>;
  const accept = (lease: Lease, anchors: Readonly<Record<string, string>>, eventKey = unique('event')) =>
    open().write(acceptBatch, {
      ...lease,
      anchors: Object.entries(anchors).map(([name, anchor]): Anchor => [conversationId(name), anchor]),
      proposals: [aMessage({ conversation: unique('c'), text: 'hi', eventKey })],
    });
  const standing = async (account: string) => Object.fromEntries(await open().read(readAnchors, { account }));

  it('advances anchors with their events, separately for each conversation', async () => {
    const lease = await claim(unique('net/bot'));
    expect(await standing(lease.account)).toEqual({});
    await accept(lease, { hall: '100', kitchen: '7' });
    await accept(lease, { kitchen: '8' });
    expect(await standing(lease.account)).toEqual({ hall: '100', kitchen: '8' });
  });

  it('never moves an anchor back, even if a number has gained a digit', async () => {
    const lease = await claim(unique('net/bot'));
    for (const anchor of ['99', '100', '98', '1000', '999', '1000']) await accept(lease, { hall: anchor });
    expect(await standing(lease.account)).toEqual({ hall: '1000' });
  });

  it("keeps anchors if the events couldn't be stored", async () => {
    const lease = await claim(unique('net/bot'));
    await accept(lease, { hall: '1' });
    const broken = { ...aMessage({ conversation: unique('c'), text: 'x' }), kind: null as never };
    const batch = { ...lease, anchors: [[conversationId('hall'), '2']] as const, proposals: [broken] };
    await expect(open().write(acceptBatch, batch)).rejects.toThrow();
    expect(await standing(lease.account)).toEqual({ hall: '1' });
  });

  it("keeps anchors per account and moves them under the account's lease only", async () => {
    const [stale, other] = [await claim(unique('net/bot')), await claim(unique('net/bot'))];
    await accept(stale, { hall: '5' });
    await accept(other, { hall: '9' });
    await open().write(releaseAccount, stale);
    await claim(stale.account, 'boot-2');
    await expect(accept(stale, { hall: '6' })).rejects.toSatisfy((error) => hasCode(error, 'stale_epoch'));
    expect(await standing(stale.account)).toEqual({ hall: '5' });
    expect(await standing(other.account)).toEqual({ hall: '9' });
  });
});
