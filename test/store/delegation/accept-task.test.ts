import { expect, it } from 'vitest';
import type { Store, StoreQuery } from '../../../src/store/base/command.ts';
import { type AcceptTaskInput, acceptTask } from '../../../src/store/delegation/accept-task.ts';
import { replyToSubtask } from '../../../src/store/delegation/operate-task.ts';
import { cancelItems } from '../../../src/store/items/change-item.ts';
import { findSentTask } from '../../../src/store/reads/read-sent-task.ts';
import { readTaskMessages } from '../../../src/store/reads/read-tasks.ts';
import { aLane, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { fenceOf } from '../family.ts';
import { aCoordinator } from './a-coordinator.ts';

const head = { taskId: 't1', subtaskId: 'main', from: 'desk' };
const aTask = (over: Partial<AcceptTaskInput> = {}): AcceptTaskInput => {
  const id = over.id ?? unique('task');
  const lane = aLane(id);
  return { id, caller: 'console', authority: 'owner', head, body: 'Compare them.', lane, ...over };
};

describeEachDatabase('a task that comes as a message', (open) => {
  const items = (store: Store, laneKey: string) => store.read(itemsOf, { laneKey });
  const stateOf = async (store: Store, taskId: string) => store.read(findSentTask, { taskId });

  it('does a task once, and keeps the answer as its result, however often it comes', async () => {
    const store = open();
    const worker = aCoordinator(store);
    const task = aTask();
    expect(await store.write(acceptTask, task)).toMatchObject({ kind: 'accepted' });
    expect(await stateOf(store, task.id)).toMatchObject({ state: 'pending', agent: 'main', head });
    expect(await store.write(acceptTask, task)).toMatchObject({ kind: 'known', runs: [] });
    const run = await worker.claimRun(task.lane.key);
    expect(await worker.promptOf(run)).toBe(
      '[Task t1, subtask main, from desk. Your last message is the reply.]\n\nCompare them.',
    );
    expect(await stateOf(store, task.id)).toMatchObject({ state: 'in-progress' });
    expect(await store.write(acceptTask, task)).toMatchObject({ kind: 'known' });
    await worker.answer(run, 'B is cheaper.');
    expect(await stateOf(store, task.id)).toMatchObject({ state: 'done', result: 'B is cheaper.' });
    expect(await store.write(acceptTask, task)).toMatchObject({ kind: 'known' });
    expect(await items(store, task.lane.key)).toMatchObject([{ outcome: 'answered' }]);
    expect(await worker.claim(task.lane.key)).toMatchObject({ kind: 'idle' });
    expect(await worker.settle()).toEqual([]);
  });

  it('has one graph: the turn for the answer is refused another, whose answer would reach nobody', async () => {
    const worker = aCoordinator(open());
    const task = aTask();
    await open().write(acceptTask, task);
    await worker.delegateIn(await worker.claimRun(task.lane.key), [{ id: 'a' }]);
    await worker.finish(task.id, 'a');
    const answering = await worker.claimRun(task.lane.key);
    expect(await worker.ask(answering, [{ id: 'b' }])).toMatchObject({
      ...{ kind: 'refused', reason: 'task_is_open' },
    });
    await worker.answer(answering, 'B is cheaper.');
    expect(await stateOf(open(), task.id)).toMatchObject({ state: 'done', result: 'B is cheaper.' });
  });

  it('stores a task once if it comes to several processes at the same time', async () => {
    const store = open();
    const task = aTask();
    const stored = await Promise.all(
      [1, 2, 3, 4].map((n) => {
        const lane = { ...task.lane, newSessionId: unique(`session-${n}`) };
        return store.write(acceptTask, { ...task, lane });
      }),
    );
    expect(stored.map(({ kind }) => kind).sort()).toEqual(['accepted', 'known', 'known', 'known']);
    expect(await items(store, task.lane.key)).toHaveLength(1);
  });

  it('refuses another body or head under the ids of a task, also after its end', async () => {
    const store = open();
    const worker = aCoordinator(store);
    const task = aTask();
    await store.write(acceptTask, task);
    const others = [{ body: 'Burn them.' }, { head: { ...head, mode: 'direct' as const } }];
    for (const over of others)
      expect(await store.write(acceptTask, { ...task, ...over })).toEqual({ kind: 'reused' });
    await worker.answer(await worker.claimRun(task.lane.key), 'B.');
    for (const over of others)
      expect(await store.write(acceptTask, { ...task, ...over })).toEqual({ kind: 'reused' });
    expect(await items(store, task.lane.key)).toHaveLength(1);
  });

  it('fails with its run, and keeps the failure for its sender', async () => {
    const store = open();
    const worker = aCoordinator(store);
    const task = aTask();
    await store.write(acceptTask, task);
    await worker.fail(await worker.claimRun(task.lane.key));
    expect(await stateOf(store, task.id)).toMatchObject({
      ...{ state: 'failed', error: expect.stringContaining('its run ended with') },
    });
    expect(await store.write(acceptTask, task)).toMatchObject({ kind: 'known' });
  });

  it('becomes a graph of its own, whose answer ends it', async () => {
    const store = open();
    const worker = aCoordinator(store);
    const task = aTask({ head: { ...head, mode: 'coordinating' } });
    await store.write(acceptTask, task);
    const run = await worker.claimRun(task.lane.key);
    expect(await worker.promptOf(run)).toContain('Break it up and delegate the parts.');
    expect(await stateOf(store, task.id)).toMatchObject({ state: 'planning' });
    expect(await worker.ask(run, [{ id: 'a' }, { id: 'b', after: ['a'] }])).toMatchObject({
      ...{ kind: 'delegated', taskId: task.id },
    });
    await worker.answer(run, 'I have asked others.');
    expect(await stateOf(store, task.id)).toMatchObject({ state: 'executing', result: undefined });
    await worker.finish(task.id, 'a');
    await worker.finish(task.id, 'b');
    await worker.answer(await worker.claimRun(task.lane.key), 'All together.');
    expect(await stateOf(store, task.id)).toMatchObject({ state: 'done', result: 'All together.' });
    expect(await store.write(acceptTask, task)).toMatchObject({ kind: 'known' });
    expect(await worker.settle()).toEqual([]);
  });

  it('fails with the reason when an operator cancels its message', async () => {
    const store = open();
    const worker = aCoordinator(store);
    const task = aTask();
    await store.write(acceptTask, task);
    const actor = { ref: 'console', people: [], mayChangeAny: true, mayPromoteOwn: true };
    await store.write(cancelItems, { laneKey: task.lane.key, actor });
    expect(await worker.settle()).toEqual([task.id]);
    const error = 'its message was cancelled before it was answered';
    expect(await stateOf(store, task.id)).toMatchObject({ state: 'failed', error });
    expect(await store.write(acceptTask, task)).toMatchObject({ kind: 'known' });
  });
});

describeEachDatabase('a reply from outside', (open) => {
  const reply = {
    subtaskId: 'a',
    status: 'done',
    body: 'by hand',
    by: 'console',
    authority: 'owner',
  } as const;
  const archived = async (store: Store, taskId: string) =>
    (await store.read(readTaskMessages, { taskId })).filter(({ state }) => state === 'archived');

  it('counts in the place of the peer, and stays recorded when it comes again', async () => {
    const store = open();
    const worker = aCoordinator(store);
    const { taskId } = await worker.begin([{ id: 'a' }, { id: 'b', after: ['a'] }]);
    for (const _ of [1, 2])
      expect(await store.write(replyToSubtask, { ...reply, taskId })).toMatchObject({ kind: 'recorded' });
    expect(await worker.states(taskId)).toEqual({ a: 'done', b: 'dispatched' });
    expect(await worker.promptOf(await worker.claimPeer(taskId, 'b'))).toContain('by hand');
    expect(await archived(store, taskId)).toEqual([]);
  });

  it('archives a reply once if its subtask has ended or never started, or its task isn’t executing', async () => {
    const store = open();
    const worker = aCoordinator(store);
    const { taskId } = await worker.begin([{ id: 'a' }, { id: 'b', after: ['a'] }]);
    const send = (over: object) => store.write(replyToSubtask, { ...reply, taskId, ...over });
    for (const _ of [1, 2]) expect(await send({ subtaskId: 'b' })).toMatchObject({ kind: 'late' });
    await worker.finish(taskId, 'a');
    for (const _ of [1, 2]) expect(await send({ body: 'too late' })).toMatchObject({ kind: 'late' });
    await worker.finish(taskId, 'b');
    expect(await send({ subtaskId: 'b', body: 'later still' })).toMatchObject({ kind: 'late' });
    expect(await worker.show(taskId)).toMatchObject({ state: 'aggregating' });
    expect((await archived(store, taskId)).map(({ body, reason }) => ({ body, reason }))).toEqual(
      expect.arrayContaining([
        { body: 'by hand', reason: 'late' },
        { body: 'too late', reason: 'late' },
        { body: 'later still', reason: 'late' },
      ]),
    );
    expect(await archived(store, taskId)).toHaveLength(3);
  });

  it('archives a reply to no subtask or task as an orphan', async () => {
    const store = open();
    const worker = aCoordinator(store);
    const { taskId } = await worker.begin([{ id: 'a' }]);
    for (const of of [
      { taskId, subtaskId: 'x' },
      { taskId: unique('none'), subtaskId: 'a' },
    ]) {
      for (const _ of [1, 2])
        expect(await store.write(replyToSubtask, { ...reply, ...of })).toMatchObject({ kind: 'orphan' });
      expect(await archived(store, of.taskId)).toMatchObject([{ reason: 'orphan', body: 'by hand' }]);
    }
    expect(await worker.states(taskId)).toEqual({ a: 'dispatched' });
  });

  it('loses to the peer that has replied before, and to no later one', async () => {
    const store = open();
    const worker = aCoordinator(store);
    const { taskId } = await worker.begin([{ id: 'a' }]);
    const peer = await worker.claimPeer(taskId, 'a');
    const [first] = await Promise.all([
      store.write(replyToSubtask, { ...reply, taskId }),
      worker.answer(peer, 'by the peer').catch(() => fenceOf(peer)),
    ]);
    const task = await worker.show(taskId);
    expect(task.texts.a?.result).toBe(first.kind === 'recorded' ? 'by hand' : 'by the peer');
    expect(task.state).toBe('aggregating');
  });
});

const itemsOf: StoreQuery<
  { readonly laneKey: string },
  readonly { readonly id: string; readonly outcome: string | null }[]
> = {
  query: 'itemsOf',
  run: (tx, { laneKey }) =>
    tx.db.selectFrom('inbox').select(['id', 'outcome']).where('laneKey', '=', laneKey).execute(),
};
