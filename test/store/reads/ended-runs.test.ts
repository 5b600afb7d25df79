import { expect, it } from 'vitest';
import { enqueueItems } from '../../../src/store/intake/enqueue-items.ts';
import {
  findLane,
  findRunPlace,
  readEndedRuns,
  readLastEnd,
} from '../../../src/store/reads/read-ended-runs.ts';
import { aLane, aMessage, anItem, aWorker, endWithout, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('the ends of a lane', (store) => {
  it('numbers the ends of a lane in their order, whatever ends elsewhere', async () => {
    const worker = aWorker(store());
    const ended: string[] = [];
    const conversation = unique('c');
    const { key: laneKey } = aLane(conversation);
    expect(await store().read(readLastEnd, { laneKey })).toBeUndefined();
    for (const how of ['answer', 'stop', 'answer'] as const) {
      await worker.accept(aMessage({ conversation, text: 'hi' }));
      const other = unique('other');
      await worker.accept(aMessage({ conversation: other, text: 'hi' }));
      await endWithout(store(), await worker.claimRun(aLane(other).key), 'stop');
      const run = await worker.claimRun(laneKey);
      expect(await store().read(findRunPlace, { runId: run.runId })).toEqual({ laneKey, runId: run.runId });
      if (how === 'answer') await worker.answer(run, 'Done.', { mayKeepLane: false });
      else await endWithout(store(), run, 'stop');
      ended.push(run.runId);
    }
    const all = await store().read(readEndedRuns, { laneKey, after: 0, limit: 10 });
    expect(all).toEqual([
      { runId: ended[0], number: 1, reason: 'natural' },
      { runId: ended[1], number: 2, reason: 'stop' },
      { runId: ended[2], number: 3, reason: 'natural' },
    ]);
    expect(await store().read(readEndedRuns, { laneKey, after: 1, limit: 1 })).toEqual([all[1]]);
    expect(await store().read(readLastEnd, { laneKey })).toEqual({ runId: ended[2], number: 3 });
    expect(await store().read(findRunPlace, { runId: ended[0] ?? '' })).toEqual({
      ...{ laneKey, runId: ended[0] },
      end: { reason: 'natural', answer: 'Done.' },
    });
  });

  it('finds a run by the id that its message reserved, whichever run took it', async () => {
    const worker = aWorker(store());
    const lane = aLane(unique('c'));
    const [first, second] = [anItem('one'), anItem('two')];
    await store().write(enqueueItems, { items: [{ lane, item: first }] });
    const find = (runId = '') => store().read(findRunPlace, { runId });
    const waiting = await find(first.reservedRunId);
    expect(waiting).toEqual({ laneKey: lane.key, runId: first.reservedRunId });
    const run = await worker.claimRun(lane.key);
    await store().write(enqueueItems, { items: [{ lane, item: second }] });
    expect((await worker.answer(run, 'First.', { parts: [] })).next).toBeUndefined();
    expect(await find(second.reservedRunId)).toEqual({ laneKey: lane.key, runId: run.runId });
    await worker.answer(run, 'Both.', { parts: [], mayKeepLane: false });
    expect(await find(second.reservedRunId)).toMatchObject({ runId: run.runId, end: { answer: 'Both.' } });
    expect(await find('nothing')).toBeUndefined();
    expect(await store().read(findLane, { laneKey: lane.key })).toBe(true);
    expect(await store().read(findLane, { laneKey: unique('nowhere') })).toBe(false);
  });
});
