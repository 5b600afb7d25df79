import { expect, it } from 'vitest';
import { revokeOnConsole } from '../../../src/store/access/operate-access.ts';
import type { StoreQuery } from '../../../src/store/base/command.ts';
import { stopTaskOrSubtask } from '../../../src/store/delegation/operate-task.ts';
import { cancelItem } from '../../../src/store/items/change-item.ts';
import { sweepChild } from '../../../src/store/lanes/sweep.ts';
import { aBot, approve, atConsole } from '../access-builders.ts';
import { aCommand, aLane, aMessage, endWithout, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { tend } from '../family.ts';
import { readLane } from '../lane-at-rest.ts';
import { aCoordinator } from './a-coordinator.ts';

const console = { by: 'console', authority: 'owner' } as const;
const operator = { ref: 'console', people: [], mayChangeAny: true, mayPromoteOwn: true } as const;

const treeOf: StoreQuery<{ readonly treeId: string }, { readonly live: number }> = {
  query: 'treeOf',
  run: (tx, { treeId }) =>
    tx.db.selectFrom('trees').select('live').where('id', '=', treeId).executeTakeFirstOrThrow(),
};

describeEachDatabase('a task that people stop', (open) => {
  const waiting = async (laneKey: string) =>
    (await readLane(open(), laneKey)).inbox.filter(({ state }) => state !== 'ended').map(({ seq }) => seq);
  const stopBy = (conversation: string, sender: string, isPrivileged = false) =>
    aCommand(conversation, { kind: 'stop', isPrivileged, isAll: false }, sender);

  it.each([
    ['its own subtask waits', [{ id: 'mine', agent: 'self' }], []],
    ['its answer waits', [{ id: 'a' }], ['a']],
    ['a peer works', [{ id: 'a' }, { id: 'b', after: ['a'] }], []],
  ])('ends with /stop by the person who asked for it, while %s', async (_, nodes, done) => {
    const worker = aCoordinator(open());
    const { taskId, lane, conversation } = await worker.begin(nodes);
    for (const id of done) await worker.finish(taskId, id);
    await worker.accept(stopBy(conversation, 'bob'));
    expect((await worker.show(taskId)).endedAt).toBeUndefined();
    await worker.accept(stopBy(conversation, 'ann'));
    expect(await worker.show(taskId)).toMatchObject({ state: 'failed', error: 'stopped' });
    expect(await waiting(lane.key)).toEqual([]);
    await worker.settle();
    expect(await worker.claim(lane.key)).toMatchObject({ kind: 'idle' });
    expect(await tend(open())).toEqual([]);
    expect(await worker.settle()).toEqual([]);
  });

  it('ends with a new session, with nobody told in that', async () => {
    const worker = aCoordinator(open());
    const { taskId, lane, conversation } = await worker.begin([{ id: 'a' }, { id: 'mine', agent: 'self' }]);
    await worker.accept(aMessage({ conversation, text: '/new', item: { kind: 'command' } }));
    const own = await worker.claimRun(lane.key);
    await worker.fail(own, 'error');
    expect(await worker.show(taskId)).toMatchObject({ state: 'aggregating' });
    expect(await worker.claim(lane.key)).toMatchObject({ kind: 'again' });
    expect(await worker.show(taskId)).toMatchObject({ state: 'failed' });
    await worker.settle();
    expect(await worker.claim(lane.key)).toMatchObject({ kind: 'idle' });
    expect(await worker.settle()).toEqual([]);
  });

  it("ends together with its sender's access", async () => {
    const worker = aCoordinator(open());
    const peer = unique('eve');
    const bot = await aBot(open());
    await bot.asks(peer, 'AAAA7777');
    await approve(open(), 'AAAA7777');
    await bot.says(peer, 'user');
    const run = await worker.claimRun(bot.laneOf(peer).key);
    const taskId = await worker.delegateIn(run, [{ id: 'mine', agent: 'self' }]);
    await open().write(revokeOnConsole, { ref: `test:${peer}`, by: atConsole });
    expect(await worker.show(taskId)).toMatchObject({ state: 'failed', error: 'stopped' });
    expect(await worker.claim(bot.laneOf(peer).key)).toMatchObject({ kind: 'idle' });
  });

  it('stays in its session, however long its subtasks take', async () => {
    const worker = aCoordinator(open());
    const { taskId, lane, conversation } = await worker.begin([{ id: 'mine', agent: 'self' }]);
    const [{ seq = 0 } = {}] = (await readLane(open(), lane.key)).inbox.slice(-1);
    await open().write(cancelItem, { laneKey: lane.key, number: seq, actor: operator });
    const late = aLane(conversation, { resetBefore: Date.now() + 60_000, newSessionId: unique('session') });
    await worker.accept(aMessage({ conversation, text: 'well?', lane: late }));
    const { sessionId } = await worker.claimRun(lane.key);
    expect(sessionId).not.toBe(late.newSessionId);
    expect(await worker.settle()).toContain(taskId);
  });
});

describeEachDatabase('a task whose items an operator cancels', (open) => {
  const cancelNewest = async (laneKey: string) => {
    const { inbox } = await readLane(open(), laneKey);
    const item = inbox.findLast(({ state }) => state === 'waiting');
    const asked = { laneKey, number: item?.seq ?? 0, actor: operator };
    const { changed, effects } = await open().write(cancelItem, asked);
    expect(changed.kind).toBe('done');
    return effects;
  };

  it.each([
    ['fail', 'failed', 'aggregating'],
    ['retry', 'failed', 'aggregating'],
    ['skip', 'skipped', 'executing'],
  ] as const)(
    'continues without its own subtask, whose policy is %s',
    async (onFailure, state, taskState) => {
      const worker = aCoordinator(open());
      const { taskId, lane } = await worker.begin([{ id: 'a' }, { id: 'mine', agent: 'self', onFailure }]);
      const { tasks } = await cancelNewest(lane.key);
      expect(tasks).toEqual([{ id: taskId, laneKey: lane.key, isUnsettled: true }]);
      expect(await worker.settle()).toEqual([taskId]);
      expect(await worker.show(taskId)).toMatchObject({ state: taskState });
      expect(await worker.states(taskId)).toMatchObject({ mine: state });
      await worker.settle();
      expect(await worker.settle()).toEqual([]);
    },
  );

  it('ends when nobody will answer it', async () => {
    const worker = aCoordinator(open());
    const { taskId, lane } = await worker.begin([{ id: 'a' }]);
    await worker.finish(taskId, 'a');
    await cancelNewest(lane.key);
    expect(await worker.settle()).toEqual([taskId]);
    expect(await worker.show(taskId)).toMatchObject({
      ...{ state: 'failed', error: 'its message was cancelled before it was answered' },
      subtasks: [{ id: 'a', state: 'done' }],
    });
    expect(await worker.settle()).toEqual([]);
  });

  it('counts a peer as failed whose item is gone', async () => {
    const worker = aCoordinator(open());
    const { taskId } = await worker.begin([{ id: 'a' }, { id: 'b' }]);
    const peers = (await worker.show(taskId)).subtasks.map(({ childId = '' }) => childId);
    const run = await worker.claimPeer(taskId, 'b');
    const laneKey = run.laneKey.replace(peers[1] ?? '', peers[0] ?? '');
    await cancelNewest(laneKey);
    expect(await tend(open())).toEqual([peers[0]]);
    expect(await worker.show(taskId)).toMatchObject({ state: 'aggregating', error: 'a: lost' });
  });
});

describeEachDatabase('a task during other work', (open, beside) => {
  it('gives its coordinator the turn again that a newer message has interrupted', async () => {
    const worker = aCoordinator(open());
    const { taskId, lane, conversation } = await worker.begin(
      [{ id: 'mine', agent: 'self', onFailure: 'fail' }],
      {},
      'interrupt',
    );
    const interrupt = async () => {
      const run = await worker.claimRun(lane.key);
      await worker.accept(aMessage({ conversation, text: 'quick question', lane }));
      await endWithout(open(), run, 'interrupt');
      const question = await worker.claimRun(lane.key);
      expect(await worker.promptOf(question)).toContain('quick question');
      await worker.answer(question, 'quick answer');
      return run;
    };
    await interrupt();
    const own = await worker.claimRun(lane.key);
    expect(await worker.promptOf(own)).toContain('do mine');
    await worker.answer(own, 'my part');
    await interrupt();
    await worker.answer(await worker.claimRun(lane.key), 'all of it');
    expect(await worker.show(taskId)).toMatchObject({ state: 'done', result: 'all of it' });
  });

  it('stays unsettled until somebody has settled it', async () => {
    const worker = aCoordinator(open());
    const { taskId } = await worker.begin([{ id: 'a', onFailure: 'skip' }, { id: 'b' }]);
    const stopped = await worker.claimPeer(taskId, 'a');
    await open().write(stopTaskOrSubtask, { ...console, taskId, subtaskId: 'a' });
    await worker.finish(taskId, 'b');
    expect(await worker.settle()).toEqual([taskId]);
    expect(await worker.answer(stopped, 'too late')).toMatchObject({ cancelReason: 'stop' });
  });

  it("leaves sub-agents' limits as they were", async () => {
    const worker = aCoordinator(open());
    const { run } = await worker.converse();
    const asked = await worker.ask(run, [{ id: 'a' }, { id: 'b' }]);
    const taskId = asked.kind === 'refused' ? asked.reason : asked.taskId;
    await worker.spawnOne(run, { limits: { children: 1, nodes: 1 } });
    await worker.answer(run, 'I have asked others.');
    await worker.finish(taskId, 'a');
    const { live } = await open().read(treeOf, { treeId: run.runId });
    expect(live).toBe(1);
  });

  it('fails the try that takes too long, and tries again', async () => {
    const worker = aCoordinator(open());
    const { taskId } = await worker.begin([{ id: 'a', onFailure: 'retry' }]);
    const slow = await worker.claimPeer(taskId, 'a');
    const childId = (await worker.show(taskId)).subtasks[0]?.childId ?? '';
    await beside.sql(`update children set "deadlineAt" = 1 where id = '${childId}'`);
    await open().write(sweepChild, { childId });
    await beside.sql(`update children set "stopAt" = 1 where id = '${childId}'`);
    await open().write(sweepChild, { childId });
    expect((await worker.show(taskId)).subtasks).toMatchObject([{ state: 'dispatched', tries: 2 }]);
    await expect(worker.answer(slow, 'too late')).rejects.toThrow();
    await worker.finish(taskId, 'a');
    expect(await worker.show(taskId)).toMatchObject({ state: 'aggregating', subtasks: [{ state: 'done' }] });
  });
});
