import { expect, it } from 'vitest';
import { replyToSubtask, retryTask, stopTaskOrSubtask } from '../../../src/store/delegation/operate-task.ts';
import { readTaskMessages } from '../../../src/store/reads/read-tasks.ts';
import { aMessage } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { aCoordinator } from './a-coordinator.ts';

const order = { by: 'console', authority: 'owner' } as const;

describeEachDatabase('a retry of a task', (open, beside) => {
  const retry = (taskId: string) => open().write(retryTask, { ...order, taskId });
  /** Delegates a chain of two beside a third, of which the second fails, and lets the coordinator say so. */
  const failed = async () => {
    const worker = aCoordinator(open());
    const { taskId, lane, run, conversation } = await worker.begin([
      { id: 'a' },
      { id: 'b', after: ['a'] },
      { id: 'c', after: ['b'] },
      { id: 'd' },
    ]);
    await worker.finish(taskId, 'd');
    await worker.finish(taskId, 'a');
    await worker.fail(await worker.claimPeer(taskId, 'b'));
    await worker.answer(await worker.claimRun(lane.key), 'It failed.');
    return { worker, taskId, lane, run, conversation };
  };

  it('runs again what has failed or never began, and keeps what is done', async () => {
    const { worker, taskId, lane } = await failed();
    expect(await retry(taskId)).toMatchObject({ kind: 'done' });
    expect(await worker.show(taskId)).toMatchObject({ state: 'executing' });
    expect(await worker.states(taskId)).toEqual({ a: 'done', b: 'dispatched', c: 'pending', d: 'done' });
    expect(await retry(taskId)).toMatchObject({ kind: 'ended' });
    const again = await worker.claimPeer(taskId, 'b');
    expect(await worker.promptOf(again)).toMatch(/try 2: an earlier one failed[\s\S]*result of a/);
    await worker.answer(again, 'better');
    await worker.finish(taskId, 'c');
    const synthesis = await worker.claimRun(lane.key);
    expect(await worker.promptOf(synthesis)).toMatch(/all 4 subtasks have ended[\s\S]*better/);
    await worker.answer(synthesis, 'It worked.');
    expect(await worker.show(taskId)).toMatchObject({ state: 'done', result: 'It worked.' });
    expect((await worker.show(taskId)).subtasks.map(({ tries }) => tries)).toEqual([1, 2, 1, 1]);
    expect(await retry(taskId)).toMatchObject({ kind: 'ended' });
  });

  it('ignores peers of earlier tries that still work', async () => {
    const worker = aCoordinator(open());
    const { taskId, lane } = await worker.begin([{ id: 'a' }, { id: 'b' }]);
    const slow = await worker.claimPeer(taskId, 'b');
    await worker.fail(await worker.claimPeer(taskId, 'a'));
    await worker.answer(await worker.claimRun(lane.key), 'It failed.');
    expect(await retry(taskId)).toMatchObject({ kind: 'done' });
    await worker.answer(slow, 'of the first try');
    expect(await worker.states(taskId)).toEqual({ a: 'dispatched', b: 'dispatched' });
    await worker.finish(taskId, 'b', 'of the second try');
    expect((await worker.show(taskId)).texts.b?.result).toBe('of the second try');
    await worker.settle();
    expect(await worker.states(taskId)).toEqual({ a: 'dispatched', b: 'done' });
  });

  it('only asks for the answer again when that has failed', async () => {
    const worker = aCoordinator(open());
    const { taskId, lane } = await worker.begin([{ id: 'a' }]);
    await worker.finish(taskId, 'a');
    await worker.fail(await worker.claimRun(lane.key));
    expect(await worker.show(taskId)).toMatchObject({ state: 'failed', error: 'its run ended with error' });
    expect(await retry(taskId)).toMatchObject({ kind: 'done' });
    expect(await worker.show(taskId)).toMatchObject({ state: 'aggregating', subtasks: [{ tries: 1 }] });
    await worker.answer(await worker.claimRun(lane.key), 'At last.');
    expect(await worker.show(taskId)).toMatchObject({ state: 'done', result: 'At last.' });
  });

  it('refuses when its tree has used up its time', async () => {
    const { taskId, run } = await failed();
    await beside.sql(`update trees set "deadlineAt" = 1 where id = '${run.runId}'`);
    expect(await retry(taskId)).toMatchObject({ kind: 'out-of-time' });
  });

  it('refuses when its session has ended', async () => {
    const { worker, taskId, lane, conversation } = await failed();
    await worker.accept(aMessage({ conversation, text: '/new', item: { kind: 'command' } }));
    await worker.claim(lane.key);
    expect(await retry(taskId)).toMatchObject({ kind: 'gone' });
    expect(await retry('nothing')).toMatchObject({ kind: 'unknown' });
  });

  it("refuses when its coordinator was itself somebody's peer, whose subtask has ended", async () => {
    const worker = aCoordinator(open());
    const { taskId } = await worker.begin([{ id: 'a' }]);
    const peer = await worker.claimPeer(taskId, 'a');
    const below = await worker.delegateIn(peer, [{ id: 'x' }]);
    expect(await worker.states(taskId)).toEqual({ a: 'dispatched' });
    await worker.fail(await worker.claimPeer(below, 'x'));
    await worker.answer(await worker.claimRun(peer.laneKey), 'I could not.');
    expect(await worker.show(taskId)).toMatchObject({
      ...{ state: 'aggregating', error: 'a: x: failed' },
      subtasks: [{ state: 'failed', taskId: below }],
    });
    expect((await worker.show(taskId)).texts.a?.result).toBe('I could not.');
    expect(await worker.show(below)).toMatchObject({ parent: { taskId, subtaskId: 'a' } });
    expect(await retry(below)).toMatchObject({ kind: 'gone' });
  });

  it('refuses while its coordinator is being stopped, since nobody would stop what begins then', async () => {
    const worker = aCoordinator(open());
    const { taskId } = await worker.begin([{ id: 'a' }]);
    const peer = await worker.claimPeer(taskId, 'a');
    const below = await worker.delegateIn(peer, [{ id: 'x' }]);
    await worker.fail(await worker.claimPeer(below, 'x'));
    // It works on the answer, so its end takes a while.
    await worker.claimRun(peer.laneKey);
    expect(await open().write(stopTaskOrSubtask, { ...order, taskId, subtaskId: 'a' })).toMatchObject({
      kind: 'done',
    });
    await worker.settle();
    expect(await worker.show(below)).toMatchObject({ state: 'failed' });
    expect(await retry(below)).toMatchObject({ kind: 'gone' });
    expect(await worker.states(below)).toEqual({ x: 'failed' });
  });

  it('needs the rights of the task', async () => {
    const { taskId } = await failed();
    expect(await open().write(retryTask, { taskId, by: 'test:eve', authority: 'guest' })).toMatchObject({
      kind: 'lesser-rights',
    });
  });
});

describeEachDatabase('a reply from outside', (open) => {
  const reply = (taskId: string, subtaskId: string, status: 'done' | 'failed' = 'done') =>
    open().write(replyToSubtask, { ...order, taskId, subtaskId, status, body: 'by hand' });
  const archived = async (taskId: string) =>
    (await open().read(readTaskMessages, { taskId }))
      .filter(({ state }) => state === 'archived')
      .map(({ subtaskId, reason, from }) => `${subtaskId} ${reason} ${from}`)
      .sort();

  it("takes the peer's place, which stops, and is archived when it comes too late", async () => {
    const worker = aCoordinator(open());
    const { taskId } = await worker.begin([{ id: 'a' }, { id: 'b', after: ['a'] }]);
    const peer = await worker.claimPeer(taskId, 'a');
    expect(await reply(taskId, 'b')).toMatchObject({ kind: 'late' });
    expect(await reply(taskId, 'a')).toMatchObject({ kind: 'recorded' });
    expect(await worker.states(taskId)).toEqual({ a: 'done', b: 'dispatched' });
    expect(await worker.settle()).toEqual([taskId]);
    expect(await worker.answer(peer, 'mine')).toMatchObject({ cancelReason: 'stop' });
    await worker.fail(peer, 'stop');
    expect(await reply(taskId, 'a')).toMatchObject({ kind: 'recorded' });
    expect(await reply(taskId, 'a', 'failed')).toMatchObject({ kind: 'late' });
    expect((await worker.show(taskId)).texts.a?.result).toBe('by hand');
    expect(await archived(taskId)).toEqual(['a late console', 'a late main', 'b late console']);
  });

  it('goes to the archive when there is no such subtask or task', async () => {
    const worker = aCoordinator(open());
    const { taskId } = await worker.begin([{ id: 'a' }]);
    expect(await reply(taskId, 'none')).toMatchObject({ kind: 'orphan' });
    expect(await archived(taskId)).toEqual(['none orphan console']);
    expect(await reply('none', 'a')).toMatchObject({ kind: 'orphan' });
  });

  it('fails a subtask for good, whatever its policy', async () => {
    const worker = aCoordinator(open());
    const { taskId } = await worker.begin([{ id: 'a', onFailure: 'retry' }]);
    expect(await reply(taskId, 'a', 'failed')).toMatchObject({ kind: 'recorded' });
    expect(await worker.show(taskId)).toMatchObject({ state: 'aggregating', subtasks: [{ tries: 1 }] });
  });
});

describeEachDatabase('a stop of one subtask', (open) => {
  it('counts as its policy says, once, and changes nothing for one that works no more', async () => {
    const worker = aCoordinator(open());
    const { taskId } = await worker.begin([
      { id: 'a', onFailure: 'skip' },
      { id: 'b', after: ['a'] },
      { id: 'c' },
    ]);
    const stop = (subtaskId: string) => open().write(stopTaskOrSubtask, { ...order, taskId, subtaskId });
    expect(await stop('b')).toMatchObject({ kind: 'ended' });
    expect(await stop('a')).toMatchObject({ kind: 'done' });
    expect(await stop('a')).toMatchObject({ kind: 'ended' });
    expect(await stop('none')).toMatchObject({ kind: 'unknown' });
    expect(await worker.states(taskId)).toEqual({ a: 'skipped', b: 'dispatched', c: 'dispatched' });
    const last = await worker.claimPeer(taskId, 'b');
    expect(await worker.promptOf(last)).toContain('[a (main): skipped, stopped by console]');
  });

  it('hands out the words of what a subtask depends on, and of nothing else', async () => {
    const worker = aCoordinator(open());
    const { taskId } = await worker.begin([{ id: 'a' }, { id: 'b' }, { id: 'c', after: ['a'] }]);
    await worker.finish(taskId, 'b', 'of no concern');
    await worker.finish(taskId, 'a', 'what c needs');
    const read = await worker.promptOf(await worker.claimPeer(taskId, 'c'));
    expect(read).toContain('what c needs');
    expect(read).not.toContain('of no concern');
  });

  it("can't delegate a part of itself: its words are the result", async () => {
    const worker = aCoordinator(open());
    const { lane } = await worker.begin([{ id: 'mine', agent: 'self' }]);
    const own = await worker.claimRun(lane.key);
    expect(await worker.ask(own, [{ id: 'x' }])).toMatchObject({ kind: 'refused', reason: 'task_is_open' });
  });
});
