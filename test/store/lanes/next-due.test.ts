import { expect, it } from 'vitest';
import { readNextDue } from '../../../src/store/lanes/sweep.ts';
import { aLane, aMessage, aWorker } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { aFamilyWorker } from '../family.ts';

describeEachDatabase('what becomes due by itself', (open, beside) => {
  const nextDue = () => open().read(readNextDue, {});

  it('dates messages, leases and sub-agents, and says at once where only the sweep can judge', async () => {
    const family = aFamilyWorker(open());
    expect(await nextDue()).toBeUndefined();

    await family.accept(aMessage({ conversation: 'a', text: 'hi' }));
    // Its sender may have to be notified.
    expect(await nextDue()).toBe(0);
    await beside.sql(`update inbox set "notifiedAt" = 0, "dueAt" = 4000`);
    expect(await nextDue()).toBe(4000);

    const run = await family.claimRun(aLane('a').key, 60_000);
    expect(await nextDue()).toBeGreaterThan(Date.now() + 30_000);
    await beside.sql(`update runs set "budgetWait" = '{}'`);
    expect(await nextDue()).toBe(0);
    await beside.sql(`update runs set "budgetWait" = null`);

    await aWorker(open()).answer(run, 'hello', { mayKeepLane: false });
    expect(await nextDue()).toBe(0);
    await beside.sql(`update outbox set state = 'sent'`);
    expect(await nextDue()).toBeUndefined();
  });

  it('dates the deadline, the stop and the archiving of a sub-agent', async () => {
    const family = aFamilyWorker(open());
    await family.accept(aMessage({ conversation: 'b', text: 'hi' }));
    await family.spawnOne(await family.claimRun(aLane('b').key, 60_000));
    await beside.sql(`update inbox set state = 'done' where state = 'waiting'`);
    await beside.sql(`update lanes set "runId" = null`);
    await beside.sql(`update children set "deadlineAt" = 5000`);
    expect(await nextDue()).toBe(5000);
    await beside.sql(`update children set "stopAt" = 3000`);
    expect(await nextDue()).toBe(3000);
    await beside.sql(`update children set "endedAt" = 1000`);
    expect(await nextDue()).toBe(3_601_000);
    await beside.sql(`update children set "archivedAt" = 1000`);
    expect(await nextDue()).toBeUndefined();
  });
});
