import { expect, it } from 'vitest';
import { claimDelivery } from '../../../src/store/delivery/claim-delivery.ts';
import { readPartStates } from '../../../src/store/delivery/tool-send.ts';
import { claimAccount } from '../../../src/store/processes/accounts.ts';
import { addProcess, readBoots, voidProcesses } from '../../../src/store/processes/process-records.ts';
import { policy } from '../a-conversation.ts';
import { aLane, aMessage, aWorker, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { isRowHeld } from '../hold-row.ts';

describeEachDatabase('a dead process among others', (open, beside) => {
  const begin = async (folder: string, role: 'gateway' | 'worker') => {
    const id = unique('boot');
    await open().write(addProcess, { id, folder, role, ended: [] });
    return id;
  };
  const aPair = async () => {
    const folder = unique('folder');
    return { folder, dead: await begin(folder, 'worker'), alive: await begin(folder, 'worker') };
  };
  /** Two processes, of which one has claimed the conversation's only part and dies. */
  const aPairWithPart = async () => {
    const { dead, alive } = await aPair();
    const conversation = unique('c');
    const worker = aWorker(open(), dead);
    await worker.accept(aMessage({ conversation, text: 'hi' }));
    const run = await worker.claimRun(aLane(conversation).key);
    await worker.answer(run, 'hello', { sender: { ...policy, holder: dead } });
    return { dead, alive, key: `${run.runId}:1`, conversationKey: `test/bot/${conversation}` };
  };
  const end = (id: string, begun?: readonly string[]) =>
    open().write(voidProcesses, { ids: [id], sends: begun ? [{ holder: id, begun }] : [] });

  it('keeps a dead process registered until it is reaped, even if another one starts', async () => {
    const { folder, dead, alive } = await aPair();
    const account = unique('net/bot');
    await open().write(claimAccount, { account, holder: dead, leaseMs: 60_000 });
    await begin(folder, 'gateway');
    expect((await open().write(claimAccount, { account, holder: alive, leaseMs: 60_000 })).kind).toBe('busy');
    expect(await open().read(readBoots, { folder })).toHaveLength(3);
    await end(dead);
    expect(await open().read(readBoots, { folder })).not.toContain(dead);
    expect((await open().write(claimAccount, { account, holder: alive, leaseMs: 60_000 })).kind).toBe('held');
  });

  it('frees the lanes of a dead process at once, those with a run and those kept between two runs', async () => {
    const { dead, alive } = await aPair();
    const [working, kept, other] = [unique('c'), unique('c'), unique('c')];
    const doomed = aWorker(open(), dead);
    for (const conversation of [working, kept, kept, other])
      await doomed.accept(aMessage({ conversation, text: 'hi' }));
    const first = await doomed.claimRun(aLane(working).key);
    await doomed.answer(await doomed.claimRun(aLane(kept).key), 'one');
    const living = aWorker(open(), alive);
    const own = await living.claimRun(aLane(other).key);
    expect((await living.claim(aLane(kept).key)).kind).toBe('busy');
    await end(dead);
    const resumed = await living.claimRun(aLane(working).key);
    expect(resumed).toMatchObject({ runId: first.runId, isResumed: true });
    expect((await living.claim(aLane(kept).key)).kind).toBe('run');
    // A second process that found the same one dead takes nothing from the living.
    await end(dead);
    await expect(living.answer(resumed, 'done')).resolves.toBeDefined();
    await expect(living.answer(own, 'done')).resolves.toBeDefined();
  });

  it.each([
    { begun: [], tells: 'had not begun is sent', kind: 'part', state: 'sending' },
    { begun: undefined, tells: 'nobody knows about is unknown', kind: 'empty', state: 'unknown' },
  ])(
    'handles the part that a dead process was sending: one whose call $tells',
    async ({ begun, kind, state }) => {
      const { dead, alive, key, conversationKey } = await aPairWithPart();
      const claim = { ...policy, holder: alive, conversationKey };
      expect((await open().write(claimDelivery, claim)).kind).toBe('busy');
      await end(dead, begun);
      expect((await open().write(claimDelivery, claim)).kind).toBe(kind);
      const [part] = await open().read(readPartStates, { keys: [key] });
      expect(part?.state).toBe(state);
    },
  );

  it.runIf(beside.dialect === 'postgres')(
    'reaps a dead process twice at once without touching what a third one sends by then',
    async () => {
      const { dead, alive, key, conversationKey } = await aPairWithPart();
      // Another process has reaped the dead one, and a third sends the part, all while this process hangs.
      const others = beside.sql(`do $$ begin
        update conversations set "deliveryHolder" = '${alive}' where key = '${conversationKey}';
        update outbox set "sendingAt" = 1 where key = '${key}';
        while not exists (select 1 from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock')
        loop perform pg_sleep(0.01); perform pg_stat_clear_snapshot(); end loop;
      end $$`);
      await expect.poll(() => isRowHeld(beside, 'outbox', key)).toBe(true);
      await end(dead, []);
      await others;
      expect(await open().read(readPartStates, { keys: [key] })).toMatchObject([{ state: 'sending' }]);
    },
  );
});
