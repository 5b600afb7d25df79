import { expect, it } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { createMetrics } from '../../src/server/metrics/metrics.ts';
import { aCoordinator } from '../store/delegation/a-coordinator.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { freeLoop } from '../support/free-loop.ts';

describeEachDatabase('the metrics of tasks', (open, { sql }) => {
  /** Reads the metrics whose names begin with one of these. */
  const read = async () => {
    const metrics = createMetrics({
      store: open(),
      clock: systemClock,
      ...freeLoop,
      isRedisReady: () => true,
    });
    const lines = (await metrics.metrics()).split('\n');
    return new Map(lines.map((line) => [line.replace(/ [^ ]+$/, ''), Number(/[^ ]+$/.exec(line)?.[0])]));
  };
  const unaccounted = async () => {
    const figures = await read();
    const of = (kind: string) => figures.get(`parley_obligations_unaccounted{kind="${kind}"}`);
    return [of('task'), of('subtask')];
  };
  /** Lets the task and all that works on it be as old as a minute. */
  const age = async (taskId: string) => {
    const minute = 60_000;
    await sql(`update "tasks" set "createdAt" = "createdAt" - ${minute} where "id" = '${taskId}'`);
    await sql(
      `update "subtasks" set "startedAt" = "startedAt" - ${minute}, "endedAt" = "endedAt" - ${minute} where "taskId" = '${taskId}'`,
    );
  };

  it('counts tasks by state and end, and none as unaccounted while they go their way', async () => {
    const before = await read();
    const worker = aCoordinator(open());
    const { taskId, lane } = await worker.begin([
      { id: 'a', onFailure: 'skip' },
      { id: 'mine', agent: 'self', after: ['a'] },
    ]);
    const grown = async (name: string) => ((await read()).get(name) ?? 0) - (before.get(name) ?? 0);
    await age(taskId);
    expect(await grown('parley_tasks{state="executing"}')).toBe(1);
    expect(await unaccounted()).toEqual([0, 0]);
    await worker.fail(await worker.claimPeer(taskId, 'a'));
    await age(taskId);
    expect(await unaccounted()).toEqual([0, 0]);
    const own = await worker.claimRun(lane.key);
    await age(taskId);
    expect(await unaccounted()).toEqual([0, 0]);
    await worker.answer(own, 'my part');
    await age(taskId);
    expect(await grown('parley_tasks{state="aggregating"}')).toBe(1);
    expect(await unaccounted()).toEqual([0, 0]);
    await worker.answer(await worker.claimRun(lane.key), 'all of it');
    expect(await grown('parley_tasks_ended{state="done"}')).toBe(1);
    expect(await grown('parley_subtasks_ended{state="skipped"}')).toBe(1);
    expect(await grown('parley_subtasks_ended{state="done"}')).toBe(1);
    expect(await unaccounted()).toEqual([0, 0]);
  });

  it('counts what nothing works on as unaccounted, once the sweep has had its time', async () => {
    const worker = aCoordinator(open());
    const { taskId, lane } = await worker.begin([
      { id: 'a' },
      { id: 'mine', agent: 'self' },
      { id: 'c', after: ['a', 'mine'] },
    ]);
    const peer = (await worker.show(taskId)).subtasks[0]?.childId;
    await sql(`update "children" set "endedAt" = 1, "state" = 'done' where "id" = '${peer}'`);
    expect(await unaccounted()).toEqual([0, 0]);
    await age(taskId);
    expect(await unaccounted()).toEqual([0, 1]);
    await sql(`delete from "inbox" where "sourceKey" = 'task:${taskId}:mine:1'`);
    expect(await unaccounted()).toEqual([0, 2]);
    await sql(`update "subtasks" set "state" = 'done' where "taskId" = '${taskId}' and "id" <> 'c'`);
    expect(await unaccounted()).toEqual([0, 1]);
    await sql(`update "subtasks" set "state" = 'done' where "taskId" = '${taskId}'`);
    expect(await unaccounted()).toEqual([1, 0]);
    await sql(`update "tasks" set "state" = 'aggregating', "rounds" = 1 where "id" = '${taskId}'`);
    expect(await unaccounted()).toEqual([1, 0]);
    await sql(`update "tasks" set "state" = 'done', "endedAt" = 1 where "id" = '${taskId}'`);
    // Nobody was told, and the subtasks have no time of their end.
    await sql(`update "subtasks" set "endedAt" = null where "taskId" = '${taskId}'`);
    expect(await unaccounted()).toEqual([1, 3]);
    await sql(`delete from "subtasks" where "taskId" = '${taskId}'`);
    await sql(`delete from "tasks" where "id" = '${taskId}'`);
    await sql(`delete from "inbox" where "laneKey" = '${lane.key}'`);
  });
});
