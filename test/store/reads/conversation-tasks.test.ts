import { expect, it } from 'vitest';
import { readActivity } from '../../../src/store/reads/read-activity.ts';
import { aCoordinator } from '../delegation/a-coordinator.ts';
import { describeEachDatabase } from '../each-database.ts';

const pair = [{ id: 'a' }, { id: 'b', after: ['a'] }];

describeEachDatabase('the tasks of a conversation', (open, { sql }) => {
  const tasksOf = async (laneKey: string) => (await open().read(readActivity, { laneKey })).tasks ?? [];

  it('shows the tasks of a conversation and of its sub-agents, with what their peers have used so far', async () => {
    const worker = aCoordinator(open(), { cost: 7 });
    const before = await worker.begin([{ id: 'other' }]);
    expect(await tasksOf('agent:main:nobody')).toEqual([]);
    const { taskId, lane } = await worker.begin(pair);
    await worker.finish(taskId, 'a');
    const peer = await worker.claimPeer(taskId, 'b');
    const nested = await worker.ask(peer, [{ id: 'c' }]);
    if (nested.kind === 'refused') throw new Error(nested.reason);
    const [task, below, ...others] = await tasksOf(lane.key);
    expect(others).toEqual([]);
    expect(task).toMatchObject({ id: taskId, title: 'a task', state: 'executing' });
    expect(task?.subtasks).toMatchObject([
      { id: 'a', state: 'done', tries: 1, name: 'do a', cost: 7 },
      { id: 'b', state: 'dispatched', dependsOn: ['a'], taskId: nested.taskId, cost: 0 },
    ]);
    expect(task).not.toHaveProperty('counts');
    expect(below).toMatchObject({ id: nested.taskId, parent: { taskId, subtaskId: 'b' } });
    expect((await tasksOf(before.lane.key)).map(({ id }) => id)).toEqual([before.taskId]);
    const { children = [] } = await open().read(readActivity, { laneKey: lane.key });
    expect(children.map(({ isPeer }) => isPeer)).toEqual([true, true, true]);
  });

  it('shows a task for an hour after its end', async () => {
    const worker = aCoordinator(open());
    const { taskId, lane } = await worker.begin([{ id: 'a' }]);
    await worker.finish(taskId, 'a');
    await worker.answer(await worker.claimRun(lane.key), 'done');
    expect(await tasksOf(lane.key)).toMatchObject([
      { id: taskId, state: 'done', endedAt: expect.any(Number) },
    ]);
    await sql(`update tasks set "endedAt" = "endedAt" - 3600001 where id = '${taskId}'`);
    expect(await tasksOf(lane.key)).toEqual([]);
  });

  it('shows only the counts and what matters of a graph with more than 300 subtasks', async () => {
    const worker = aCoordinator(open());
    const fan = Array.from({ length: 350 }, (_, n) => ({ id: `n${n}`, ...(n > 20 && { after: ['n0'] }) }));
    const { taskId, lane } = await worker.begin(fan, { limits: { depth: 5, nodes: 500, treeMs: 3_600_000 } });
    await worker.finish(taskId, 'n3');
    const [task] = await tasksOf(lane.key);
    expect(task?.counts).toEqual({ dispatched: 20, done: 1, pending: 329 });
    expect(task?.subtasks).toHaveLength(100);
    expect(task?.subtasks.filter(({ state }) => state === 'dispatched')).toHaveLength(20);
    expect(task?.subtasks.some(({ id }) => id === 'n3')).toBe(false);
  });

  it('shows the ten most recent tasks, open ones before those that have ended', async () => {
    const worker = aCoordinator(open());
    const { lane } = await worker.begin([{ id: 'a' }]);
    const columns = `"parentTaskId", "parentSubtaskId", "sessionId", "laneKey", "agentId", "treeId", "runId", "callId",
      caller, head, title, mode, route, authority, role, error, told, rounds, "isUnsettled", revision, "isUnshown",
      instructions, result`;
    const copy = (id: string, state: string, at: string) =>
      sql(`insert into tasks (id, state, "createdAt", "endedAt", ${columns})
        select '${id}-' || id, '${state}', ${at}, ${columns} from tasks where "laneKey" = '${lane.key}'
        order by length(id) limit 1`);
    for (let n = 1; n <= 12; n++) await copy(`done${n}`, 'done', `"createdAt" + ${n}, "createdAt" + ${n}`);
    const shown = await tasksOf(lane.key);
    expect(shown.map(({ state }) => state)).toEqual(['executing', ...Array(9).fill('done')]);
    expect(shown.at(-1)?.id).toContain('done12-');
  });
});
