import { expect, it } from 'vitest';
import type { StoreQuery } from '../../../src/store/base/command.ts';
import { findSession } from '../../../src/store/reads/read-sessions.ts';
import { describeEachDatabase } from '../each-database.ts';
import { aCoordinator } from './a-coordinator.ts';

describeEachDatabase('the cost of a task', (open) => {
  it('charges the conversation once for each peer, of every try and of nested tasks', async () => {
    const worker = aCoordinator(open(), { cost: 100 });
    const { taskId, lane } = await worker.begin([
      { id: 'a', onFailure: 'retry' },
      { id: 'mine', agent: 'self', after: ['a'] },
    ]);
    const first = await worker.claimPeer(taskId, 'a');
    const nested = await worker.ask(first, [{ id: 'deep' }]);
    if (nested.kind === 'refused') throw new Error(nested.reason);
    await worker.answer(first, 'I have asked somebody.');
    await worker.finish(nested.taskId, 'deep');
    // Its answer fails, so that the subtask is tried again.
    await worker.fail(await worker.claimRun(first.laneKey));
    await worker.finish(taskId, 'a');
    await worker.answer(await worker.claimRun(lane.key), 'my part');
    await worker.answer(await worker.claimRun(lane.key), 'all of it');
    // The delegating run, the peer's first run, the nested peer, the second try, the own part, the answer.
    const found = await open().read(findSession, { idOrKey: lane.key });
    expect(found).toMatchObject({ kind: 'found', session: { cost: 600 } });
    expect(await open().read(totalCost, { laneKey: lane.key })).toBe(600);
    expect(await worker.show(taskId)).toMatchObject({
      subtasks: [
        { id: 'a', tries: 2, cost: 200 },
        { id: 'mine', cost: 0 },
      ],
    });
    expect(await worker.show(nested.taskId)).toMatchObject({ subtasks: [{ id: 'deep', cost: 100 }] });
  });
});

/** Sums the model calls of all runs in the lane and in those below it. */
const totalCost: StoreQuery<{ readonly laneKey: string }, number> = {
  query: 'totalCost',
  run: async (tx, { laneKey }) => {
    const row = await tx.db
      .selectFrom('modelCalls')
      .innerJoin('runs', 'runs.id', 'modelCalls.runId')
      .select((eb) => eb.fn.sum<number>('modelCalls.cost').as('cost'))
      .where('runs.laneKey', 'like', `%${laneKey}`)
      .executeTakeFirst();
    return Number(row?.cost ?? 0);
  },
};
