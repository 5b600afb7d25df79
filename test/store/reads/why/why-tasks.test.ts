import { expect, it } from 'vitest';
import { renderTrace } from '../../../../src/cli/render-trace.ts';
import { stopTaskOrSubtask } from '../../../../src/store/delegation/operate-task.ts';
import { readWhy } from '../../../../src/store/reads/why/read-why.ts';
import { aCoordinator } from '../../delegation/a-coordinator.ts';
import { describeEachDatabase } from '../../each-database.ts';

describeEachDatabase('the trace of a message with a task', (open) => {
  const traceOf = async (id: string, withExcerpts = false) => {
    const found = await open().read(readWhy, { id, withExcerpts });
    if (found.kind !== 'account') throw new Error(`${id} is ${found.kind}`);
    return found.account;
  };

  it('traces a message through a nested task to its answer, and back from any part of it', async () => {
    const worker = aCoordinator(open());
    const { taskId, run, lane } = await worker.begin([
      { id: 'a' },
      { id: 'mine', agent: 'self', after: ['a'] },
    ]);
    const peer = await worker.claimPeer(taskId, 'a');
    const nested = await worker.ask(peer, [{ id: 'deep' }]);
    if (nested.kind === 'refused') throw new Error(nested.reason);
    await worker.answer(peer, 'I have asked somebody.');
    const deep = await worker.claimPeer(nested.taskId, 'deep');
    await worker.answer(deep, 'found');
    const relay = await worker.claimRun(peer.laneKey);
    await worker.answer(relay, 'all found');
    const own = await worker.claimRun(lane.key);
    await worker.answer(own, 'my part');
    const last = await worker.claimRun(lane.key);
    await worker.answer(last, 'Here it is.');

    const whole = [run, peer, deep, relay, own, last].map(({ runId }) => runId).sort();
    const peerId = (await worker.show(taskId)).subtasks[0]?.childId ?? '';
    for (const id of [run.runId, deep.runId, last.runId, own.runId, taskId, nested.taskId, peerId]) {
      const { runs, tasks } = await traceOf(id);
      expect([id, runs.map((one) => one.id).sort()]).toEqual([id, whole]);
      expect(tasks).toMatchObject([
        { id: taskId, state: 'done', told: 'lane', subtasks: [{ id: 'a', state: 'done' }, { id: 'mine' }] },
        { id: nested.taskId, state: 'done', told: 'parent', parentTaskId: taskId, parentSubtaskId: 'a' },
      ]);
    }
    const story = renderTrace(await traceOf(taskId.slice(0, 7)));
    expect(story).toMatch(new RegExp(`^task ${taskId}\n`));
    for (const line of [
      `task ${taskId} was delegated by run ${run.runId}`,
      `to agent main, for subtask a of task ${taskId}`,
      `subtask a of task ${taskId} was given to agent main as sub-agent ${peerId}`,
      `subtask mine of task ${taskId} was given to self`,
      `subtask a of task ${taskId} is done`,
      `for subtask a of task ${taskId} at depth 1`,
      `; its result went to its subtask`,
      `task ${taskId} ended (done); its answer went into the conversation`,
      `task ${nested.taskId} ended (done); its answer went to the subtask that it is part of`,
    ])
      expect(story).toContain(line);
    expect(story).not.toContain('a task');
    expect(renderTrace(await traceOf(peerId, true))).toContain('“a task”');
  });

  it('says what an open task waits for, and why a stopped one failed', async () => {
    const worker = aCoordinator(open());
    const { taskId } = await worker.begin([
      { id: 'a', onFailure: 'retry' },
      { id: 'b', after: ['a'] },
    ]);
    const first = (await worker.show(taskId)).subtasks[0]?.childId;
    await worker.fail(await worker.claimPeer(taskId, 'a'));
    const atWork = renderTrace(await traceOf(taskId));
    expect(atWork).toMatch(new RegExp(`subtask a of task ${taskId} was given to agent main as .*, try 2`));
    expect(atWork).toContain(`now                  subtask b of task ${taskId} is pending`);
    expect(atWork).toContain(`task ${taskId} is executing`);
    expect(atWork).toMatch(new RegExp(`sub-agent ${first} was spawned .* for subtask a of task ${taskId}`));
    await open().write(stopTaskOrSubtask, { taskId, by: 'console', authority: 'owner' });
    const stopped = renderTrace(await traceOf(taskId));
    expect(stopped).toContain(`subtask b of task ${taskId} is skipped: stopped by console`);
    expect(stopped).toContain(
      `task ${taskId} ended (failed: stopped by console); nothing was waiting for its answer`,
    );
  });
});
