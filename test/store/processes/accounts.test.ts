import { expect, it } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import { acceptBatch } from '../../../src/store/intake/accept-batch.ts';
import { claimAccount, releaseAccount } from '../../../src/store/processes/accounts.ts';
import { addProcess, voidProcesses } from '../../../src/store/processes/process-records.ts';
import { aMessage, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('a bot account', (open) => {
  const claim = (account: string, holder: string) =>
    open().write(claimAccount, { account, holder, leaseMs: 60_000 });
  const epochOf = async (account: string, holder: string) => {
    const lease = await claim(account, holder);
    if (lease.kind !== 'held') throw new Error('the account is busy');
    return lease.epoch;
  };
  const accept = (account: string, as: { holder: string; epoch: number; cursor: string }) =>
    open().write(acceptBatch, {
      account,
      ...as,
      proposals: [aMessage({ conversation: unique('c'), text: 'hi' })],
    });

  it('lets one process at a time receive for an account, and renews it under one epoch', async () => {
    const account = unique('net/bot');
    const epoch = await epochOf(account, 'boot-1');
    expect((await claim(account, 'boot-2')).kind).toBe('busy');
    expect(await epochOf(account, 'boot-1')).toBe(epoch);
    await open().write(releaseAccount, { account, holder: 'boot-1' });
    expect(await epochOf(account, 'boot-2')).toBe(epoch + 1);
  });

  it('tells the next holder until when the account was received, after a release and after a death', async () => {
    const account = unique('net/bot');
    const [first, second, third] = [unique('boot'), unique('boot'), unique('boot')];
    expect(await claim(account, first)).toMatchObject({ heldUntil: undefined });
    const renewed = await claim(account, first);
    await open().write(releaseAccount, { account, holder: first });
    const taken = await claim(account, second);
    await open().write(voidProcesses, { ids: [second], sends: [] });
    const left = await claim(account, third);
    const ends = [renewed, taken, left].map((one) => (one.kind === 'held' ? (one.heldUntil ?? 0) : 0));
    expect(ends.every((end) => end > Date.now())).toBe(true);
    expect(ends).toEqual(ends.toSorted((a, b) => a - b));
  });

  it('rejects the writes of a process once another has taken the account over', async () => {
    const account = unique('net/bot');
    const stale = { holder: 'boot-1', epoch: await epochOf(account, 'boot-1') };
    await accept(account, { ...stale, cursor: '1' });
    await open().write(releaseAccount, { account, holder: 'boot-1' });
    const fresh = { holder: 'boot-2', epoch: await epochOf(account, 'boot-2') };
    await accept(account, { ...fresh, cursor: '2' });
    await expect(accept(account, { ...stale, cursor: '1' })).rejects.toSatisfy((error) =>
      hasCode(error, 'stale_epoch'),
    );
    expect(await claim(account, 'boot-2')).toMatchObject({ kind: 'held', cursor: '2' });
  });

  it('frees an account at once when its holder restarts on the same folder', async () => {
    const account = unique('net/bot');
    const folder = unique('folder');
    const [first, second] = [unique('boot'), unique('boot')];
    await open().write(addProcess, { id: first, folder });
    await epochOf(account, first);
    expect((await claim(account, second)).kind).toBe('busy');
    await open().write(addProcess, { id: second, folder });
    expect((await claim(account, second)).kind).toBe('held');
  });
});
