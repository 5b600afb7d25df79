import { expect, it } from 'vitest';
import type { Store } from '../../../src/store/base/command.ts';
import { conversationKeyOf } from '../../../src/store/base/keys.ts';
import { handOver, releaseFailedRun, resumePaused } from '../../../src/store/lanes/leases.ts';
import { makeDue, readSweep, type SweepPlace } from '../../../src/store/lanes/sweep.ts';
import { addProcess } from '../../../src/store/processes/process-records.ts';
import { aLane, aMessage, aRoute, aWorker, defaults, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { aFamilyWorker } from '../family.ts';

describeEachDatabase('the sweep', (open, beside) => {
  const aRunOf = async (boot: string) => {
    const conversation = unique('c');
    await aWorker(open()).accept(aMessage({ conversation, text: 'hi' }));
    const { key } = aLane(conversation);
    return { key, run: await aWorker(open(), boot).claimRun(key) };
  };

  const findIn = async (store: Store, laneKey: string) =>
    (await store.read(readSweep, {})).lanes.find((lane) => lane.laneKey === laneKey);

  it("counts the wait of a dead process's run from the next start on", async () => {
    const folder = unique('folder');
    const boot = unique('boot');
    await open().write(addProcess, { id: boot, folder });
    const { key } = await aRunOf(boot);
    expect(await findIn(open(), key)).toBeUndefined();
    const since = Date.now() - 1000;
    await open().write(addProcess, { id: unique('boot'), folder });
    expect((await findIn(open(), key))?.waitingSince).toBeGreaterThan(since);
  });

  it('makes items due that were stored under a clock that has been set back since', async () => {
    const conversation = unique('ahead');
    const worker = aWorker(open());
    const { key } = aLane(conversation);
    const lane = aLane(conversation, { settings: { ...defaults, debounceMs: 1_000 } });
    for (const text of ['before', 'then']) await worker.accept(aMessage({ conversation, text, lane }));
    // The second one has postponed the first, which was stored before the clock was set forward.
    await beside.sql(`update inbox set "dueAt" = "dueAt" + 7200000 where "laneKey" = '${key}'`);
    await beside.sql(`update inbox set "createdAt" = "createdAt" + 7200000 where "laneKey" = '${key}'
      and seq = (select max(seq) from inbox where "laneKey" = '${key}')`);
    expect((await worker.claim(key)).kind).toBe('armed');
    const { ahead } = await open().read(readSweep, {});
    expect(ahead).toHaveLength(1);
    await open().write(makeDue, { ids: ahead });
    expect((await open().read(readSweep, {})).ahead).toEqual([]);
    expect((await worker.claim(key)).kind).toBe('run');
  });

  it('resumes a run paused under a clock that has been set back since, and leaves parked runs parked', async () => {
    const family = aFamilyWorker(open());
    const [{ key, run }, waiting] = [await aRunOf(unique('boot')), await aRunOf(unique('boot'))];
    await family.spawnOne(waiting.run, { mode: 'wait' });
    await family.park(waiting.run);
    const { laneKey, epoch, runId } = run;
    await open().write(releaseFailedRun, { laneKey, epoch, runId, pauseMs: 2_000 });
    await open().write(resumePaused, {});
    expect((await family.claim(key)).kind).toBe('busy');
    await beside.sql(
      `update lanes set "leaseUntil" = "leaseUntil" + 7200000 where key in ('${key}', '${waiting.key}')`,
    );
    await open().write(resumePaused, {});
    expect(await family.claimRun(key)).toMatchObject({ runId, isResumed: true });
    expect((await family.claim(waiting.key)).kind).toBe('parked');
  });

  it('delivers parts that were stored under a clock that has been set back since', async () => {
    const conversation = unique('ahead');
    const worker = aWorker(open());
    await worker.accept(aMessage({ conversation, text: 'hi' }));
    await worker.answer(await worker.claimRun(aLane(conversation).key), 'hello');
    const conversationKey = conversationKeyOf(aRoute(conversation));
    const isFound = async () => (await open().read(readSweep, {})).conversations.includes(conversationKey);
    const wait = (ms: number) =>
      beside.sql(
        `update outbox set "dueAt" = "createdAt" + ${ms} where "conversationKey" = '${conversationKey}'`,
      );
    // As long as a platform may ask us to wait.
    await wait(240_000);
    expect(await isFound()).toBe(false);
    await wait(7_200_000);
    expect(await isFound()).toBe(true);
  });

  it('reads all waiting lanes page by page, longest wait first', async () => {
    const conversation = unique('many');
    const { key } = aLane(conversation);
    await aWorker(open()).accept(aMessage({ conversation, text: 'hi' }));
    await beside.sql(
      `insert into lanes (key, ${laneColumns}, "leaseUntil") ${copies(`key || n, ${laneColumns}, "leaseUntil"`, 'lanes')} key = '${key}'`,
    );
    await beside.sql(`insert into inbox (id, "laneKey", "dueAt", "createdAt", ${itemColumns})
      ${copies(`id || n, "laneKey" || n, "dueAt" - n, "createdAt" - n, ${itemColumns}`, 'inbox')} "laneKey" = '${key}'`);
    const found: { readonly laneKey: string; readonly waitingSince: number }[] = [];
    let pages = 0;
    let next: SweepPlace | undefined;
    do {
      const sweep = await open().read(readSweep, { after: next });
      expect(sweep.lanes.length).toBeLessThanOrEqual(1_000);
      found.push(...sweep.lanes.filter(({ laneKey }) => laneKey.includes(':many-')));
      pages += 1;
      next = sweep.next;
    } while (next !== undefined);
    expect(pages).toBeGreaterThan(2);
    const all = [key, ...Array.from({ length: 1_099 }, (_, n) => `${key}${n + 1}`)];
    expect(found.map(({ laneKey }) => laneKey).sort()).toEqual(all.sort());
    const since = found.map(({ waitingSince }) => waitingSince);
    expect(since).toEqual(since.toSorted((a, b) => a - b));
  });

  it('reads dead lanes and parked runs page by page, so that blocked ones hide no others', async () => {
    const { key, run } = await aRunOf(unique('boot'));
    await beside.sql(`update lanes set "leaseUntil" = 5000 where key = '${key}'`);
    const dead = `${laneColumns}, "leaseUntil", "runId"`;
    await beside.sql(`insert into lanes (key, ${dead})
      ${copies(`key || n, ${laneColumns}, "leaseUntil" - n, "runId"`, 'lanes')} key = '${key}'`);
    const waits = (budget: string, needs: number) =>
      `'${JSON.stringify({ key: budget, limit: 1, needs, isHeld: false })}'`;
    const parked = `${runColumns}, "parkedAt", "budgetWait"`;
    await beside.sql(`insert into runs (id, ${parked})
      ${copies(`id || n, ${runColumns}, n / 3, ${waits('full', 2)}`, 'runs')} id = '${run.runId}'`);
    await beside.sql(`insert into runs (id, ${parked})
      select id || '-free', ${runColumns}, 9000, ${waits('free', 1)} from runs where id = '${run.runId}'`);
    const [lanes, withRoom]: [string[], string[]] = [[], []];
    let next: SweepPlace | undefined;
    do {
      const sweep = await open().read(readSweep, { after: next });
      lanes.push(...sweep.lanes.filter(({ isAbandoned }) => isAbandoned).map(({ laneKey }) => laneKey));
      withRoom.push(...sweep.withRoom.map(({ runId }) => runId));
      next = sweep.next;
    } while (next !== undefined);
    const all = [key, ...Array.from({ length: 1_099 }, (_, n) => `${key}${n + 1}`)];
    const seen = new Set(lanes);
    expect(all.filter((each) => !seen.has(each))).toEqual([]);
    expect(withRoom).toEqual([`${run.runId}-free`]);
    await beside.sql(
      `delete from lanes where "runId" = '${run.runId}'; delete from runs where "parkedAt" >= 0`,
    );
  });

  it('finds every conversation with due parts, even after a full page of others', async () => {
    const conversations = Array.from({ length: 510 }, () => unique('said'));
    const refusals = conversations.map((conversation) => {
      const notice = { route: aRoute(conversation), text: 'not you' };
      const decision = { kind: 'refuse', reason: 'dm-not-allowed', notice } as const;
      return { ...aMessage({ conversation, text: 'hi' }), decision };
    });
    await aWorker(open()).accept(...refusals);
    const found: string[] = [];
    let next: SweepPlace | undefined;
    do {
      const sweep = await open().read(readSweep, { after: next });
      found.push(...sweep.conversations);
      next = sweep.next;
    } while (next !== undefined);
    const wanted = conversations.map((conversation) => conversationKeyOf(aRoute(conversation)));
    expect(found).toEqual(expect.arrayContaining(wanted));
  });

  it('counts the wait of a run that was handed over from the handover on', async () => {
    const { key, run } = await aRunOf(unique('boot'));
    const since = Date.now() - 1000;
    await open().write(handOver, run);
    expect((await findIn(open(), key))?.waitingSince).toBeGreaterThan(since);
  });
});

const laneColumns = columns(
  'class agentId chatKind sessionId epoch nextSeq mode debounceMs quietMs cap drop lastActivityAt',
);
const runColumns = columns(
  'laneKey sessionId state epoch attempts isHandedOver authority model reasoning nextOrdinal treeId startedAt workedMs',
);
const itemColumns = columns(
  'seq rank kind state account conversationKey messageId senderId authority route content isFetching',
);

function columns(names: string): string {
  return names.replaceAll(/\w+/g, '"$&"').replaceAll(' ', ', ');
}

/** Returns the start of a statement that inserts 1,099 copies of the row that the caller's condition selects. */
function copies(selected: string, table: string): string {
  return `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 1099)
    select ${selected} from ${table}, numbers where`;
}
