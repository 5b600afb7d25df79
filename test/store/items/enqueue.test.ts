/** How Parley itself adds to a lane: what is stored once, what joins what, and what leaves no part. */
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import type { Reach } from '../../../src/contracts/inbox-item.ts';
import { type QueueMode, queueModes } from '../../../src/contracts/queue-settings.ts';
import type { LaneRef } from '../../../src/store/base/keys.ts';
import { enqueueItems } from '../../../src/store/intake/enqueue-items.ts';
import { cancelSession } from '../../../src/store/intake/stop.ts';
import { chooseBatch, chooseSteers } from '../../../src/store/items/choose-batch.ts';
import type { InnerItem } from '../../../src/store/items/enqueue-item.ts';
import { needsBoundary, takeSteers } from '../../../src/store/lanes/steer.ts';
import { readRunResult } from '../../../src/store/reads/read-run-result.ts';
import { readTimeline } from '../../../src/store/reads/read-timeline.ts';
import { aConversation } from '../a-conversation.ts';
import {
  aCommand,
  aLane,
  anItem,
  aRoute,
  aWorker,
  defaults,
  endWithout,
  framing,
  unique,
} from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readLane } from '../lane-at-rest.ts';

describeEachDatabase('an item from inside Parley', (open, beside) => {
  const enqueue = (lane: LaneRef, ...items: InnerItem[]) =>
    open().write(enqueueItems, { items: items.map((item) => ({ lane, item })) });

  it('stores an item once under its source key when several processes enqueue it at once', async () => {
    const other = await beside.open();
    onTestFinished(() => other.close());
    const sourceKey = unique('api:key');
    const lanes = [aLane(unique('c')), aLane(unique('c'))];
    const enqueued = await Promise.all(
      Array.from({ length: 12 }, (_, index) => {
        const lane = lanes[index % 2] ?? aLane('never');
        const items = [{ lane, item: anItem('hello', { sourceKey }) }];
        return (index % 3 === 0 ? other : open()).write(enqueueItems, { items });
      }),
    );
    expect(new Set(enqueued.map(({ items }) => items[0]?.reservedRunId)).size).toBe(1);
    const worker = aWorker(open());
    const claims = await Promise.all(lanes.map(({ key }) => worker.claim(key)));
    expect(claims.filter(({ kind }) => kind === 'run')).toHaveLength(1);
  });

  it('starts the run whose id an item has reserved, which records its answer and sends no part', async () => {
    const lane = aLane(unique('c'));
    const item = anItem('hello');
    const { effects } = await enqueue(lane, item);
    expect(effects.wakes).toEqual([{ laneKey: lane.key, class: 'main', delayMs: 0 }]);
    const worker = aWorker(open());
    const run = await worker.claimRun(lane.key);
    expect(run).toMatchObject({ runId: item.reservedRunId, target: 'record' });
    const route = aRoute('somewhere');
    const content = { kind: 'text', text: { text: 'hi', spans: [] } } as const;
    const said = await worker.answer(run, 'hi', { parts: [{ route, content, purpose: 'reply' }] });
    expect(said.effects.deliveries).toEqual([]);
    expect(await open().read(readTimeline, { laneKey: lane.key, limit: 10 })).toEqual([]);
    const result = await open().read(readRunResult, { runId: run.runId });
    expect(result).toMatchObject({ kind: 'ended', outcome: 'answered', text: 'hi' });
  });

  it('reports the run that took an item if that is another one', async () => {
    const lane = aLane(unique('c'), { settings: { ...defaults, mode: 'collect' } });
    const [one, two] = [anItem('one'), anItem('two')];
    await enqueue(lane, one, two);
    const worker = aWorker(open());
    const open1 = await open().read(readRunResult, { runId: two.reservedRunId ?? '' });
    expect(open1).toEqual({ kind: 'open', laneKey: lane.key });
    const run = await worker.claimRun(lane.key);
    const { startedAt } = run;
    expect(await open().read(readRunResult, { runId: two.reservedRunId ?? '' })).toEqual({
      ...{ kind: 'open', laneKey: lane.key, mergedInto: one.reservedRunId, startedAt },
    });
    await worker.answer(run, 'both', { parts: [] });
    const merged = await open().read(readRunResult, { runId: two.reservedRunId ?? '' });
    expect(merged).toMatchObject({
      ...{ mergedInto: one.reservedRunId, startedAt, outcome: 'answered', text: 'both' },
    });
    expect(await open().read(readRunResult, { runId: 'nonsense' })).toEqual({ kind: 'unknown' });
  });

  it('runs an item by itself instead of joining a run with another target', async () => {
    const { lane, claimRun, begin, answer } = aConversation(open());
    const run = await begin('hello');
    await enqueue(lane, anItem('from a program', { reach: 'always' }));
    const { epoch, runId } = run;
    const at = { laneKey: lane.key, epoch, runId, framing, delivery: 'all' } as const;
    expect((await open().write(takeSteers, at)).steers).toEqual([]);
    await answer(run, 'hi');
    expect(await claimRun()).toMatchObject({ target: 'record' });
  });

  it('commits a boundary for an item only if it may join the run', async () => {
    const worker = aWorker(open());
    const steering: string[] = [];
    for (const mode of queueModes) {
      for (const reach of reaches) {
        const lane = aLane(unique('c'), { settings: { ...defaults, mode } });
        await enqueue(lane, anItem('begin'));
        const run = await worker.claimRun(lane.key);
        await enqueue(lane, anItem('more', { reach }));
        if (await open().read(needsBoundary, run)) steering.push(`${mode} ${reach}`);
      }
    }
    // Interrupted runs learn of it through their cancel flag.
    const always = ['followup always', 'collect always', 'interrupt mode', 'interrupt always'];
    const joining = ['steer mode', 'steer always', 'steer-backlog mode', 'steer-backlog always'];
    expect(steering).toEqual([...joining, ...always]);
  });

  it("doesn't count an inner item towards the cap or cancel it on its sender's /stop", async () => {
    const { conversation, lane, worker, say, begin, answer } = aConversation(open(), {
      settings: { mode: 'followup', cap: 2 },
    });
    const run = await begin('hello');
    const item = anItem('kept');
    await enqueue(lane, anItem('one'), anItem('two'), item);
    const { effects } = await say('fits');
    expect(effects.overflows).toEqual([]);
    await worker.accept(aCommand(conversation, { kind: 'stop', isPrivileged: true, isAll: false }));
    await answer(run, 'hi', { parts: [] });
    const result = await open().read(readRunResult, { runId: item.reservedRunId ?? '' });
    expect(result.kind).toBe('open');
  });

  it('cancels an item by its own run id only, whether it waits or was retained', async () => {
    const lane = aLane(unique('c'), { settings: { ...defaults, mode: 'steer-backlog' } });
    const [one, steer, waiting, other] = [anItem('one'), anItem('two'), anItem('three'), anItem('four')];
    const cancel = ({ reservedRunId = '' }: InnerItem) =>
      open().write(cancelSession, { laneKey: lane.key, runId: reservedRunId });
    await enqueue(lane, one);
    const run = await aWorker(open()).claimRun(lane.key);
    await enqueue(lane, steer);
    const at = { laneKey: lane.key, epoch: run.epoch, runId: run.runId, framing };
    expect((await open().write(takeSteers, { ...at, delivery: 'all' })).steers).toHaveLength(1);
    await enqueue(lane, waiting, other);
    expect((await cancel(waiting)).isCancelled).toBe(true);
    expect((await cancel(waiting)).isCancelled).toBe(false);
    expect((await cancel(steer)).isCancelled).toBe(true);
    await endWithout(open(), run, 'stop');
    const { inbox } = await readLane(open(), lane.key);
    expect(inbox.map(({ outcome }) => outcome)).toEqual(['cancelled', 'cancelled', 'cancelled', null]);
  });

  it("refuses an item whose lane doesn't exist", async () => {
    await expect(enqueue({ key: 'main:nobody' }, anItem('hello'))).rejects.toMatchObject({
      code: 'invalid_input',
    });
  });
});

const reaches: readonly Reach[] = ['mode', 'always', 'alone'];

function waitingRow(id: string, reach: Reach) {
  return {
    id,
    kind: 'message',
    target: 'record',
    authority: 'owner',
    dueAt: 0,
    bundle: null,
    reach,
  } as const;
}

it.each(queueModes.flatMap((mode) => reaches.map((reach) => [mode, reach] as const)))(
  'lets an item join a run in mode %s with reach %s only if both allow it',
  (mode, reach) => {
    const run = { mode, target: 'record', authority: 'owner', delivery: 'all', now: 1 } as const;
    const joins = reach === 'always' || (reach === 'mode' && (mode === 'steer' || mode === 'steer-backlog'));
    expect(chooseSteers([waitingRow('a', reach)], run)).toHaveLength(joins ? 1 : 0);
    expect(chooseSteers([waitingRow('a', reach)], { ...run, authority: 'guest' })).toEqual([]);
    expect(chooseSteers([waitingRow('a', reach)], { ...run, target: aRoute('c') })).toEqual([]);
  },
);

it('takes an item with reach “alone” by itself, whatever else waits', () => {
  const rows = fc.array(fc.constantFrom(...reaches), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(rows, fc.constantFrom<QueueMode>(...queueModes), (some, mode) => {
      const waiting = some.map((reach, index) => waitingRow(String(index), reach));
      const choice = chooseBatch(waiting, mode, 1);
      if (choice.kind !== 'run') throw new Error('nothing was chosen');
      const taken = choice.rows.map(({ reach }) => reach);
      expect(taken).toEqual(some.slice(0, taken.length));
      if (taken.includes('alone')) expect(taken).toEqual(['alone']);
      const run = { mode, target: 'record', authority: 'owner', delivery: 'all', now: 1 } as const;
      const steers = chooseSteers(waiting, run);
      expect(steers.every(({ reach }) => reach !== 'alone')).toBe(true);
      for (const row of waiting) if (row.reach === 'always') expect(steers).toContain(row);
    }),
  );
});
