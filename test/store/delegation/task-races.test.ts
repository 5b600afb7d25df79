import { expect, it, onTestFinished } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import { dispatchedAtOnce } from '../../../src/store/children/subtasks.ts';
import { replyToSubtask, stopTaskOrSubtask } from '../../../src/store/delegation/operate-task.ts';
import { settleTask } from '../../../src/store/delegation/settle-task.ts';
import { isLong } from '../../support/long-run.ts';
import { aCommand } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { tend } from '../family.ts';
import { aCoordinator, type Node } from './a-coordinator.ts';

const rounds = isLong ? 20 : 2;
const order = { by: 'console', authority: 'owner' } as const;
const fan = (count: number): readonly Node[] => [
  ...Array.from({ length: count }, (_, n) => ({ id: `n${n}` })),
  { id: 'join', after: Array.from({ length: count }, (_, n) => `n${n}`) },
];

describeEachDatabase('a task that several processes move at once', (open, beside) => {
  const both = async () => {
    const other = await beside.open();
    onTestFinished(() => other.close());
    const stores = [open(), other] as const;
    const workers = stores.map((store, n) => aCoordinator(store, { name: `boot-${n}` }));
    const [worker, second] = workers;
    if (!worker || !second) throw new Error('test error: no worker');
    return { stores, worker, second };
  };
  /** Lets these peers be claimed by two processes in turn, and returns their ends. */
  const claimed = async (
    { worker, second }: Awaited<ReturnType<typeof both>>,
    taskId: string,
    ids: readonly string[],
  ) => {
    const runs = [];
    for (const [n, id] of ids.entries()) {
      const by = n % 2 === 0 ? worker : second;
      const run = await by.claimPeer(taskId, id);
      runs.push(() => by.answer(run, `result of ${id}`).catch(ignoreLost));
    }
    return runs;
  };
  /** Nothing of it is left, and the next claim finds nothing. */
  const expectRest = async (worker: ReturnType<typeof aCoordinator>, laneKey: string) => {
    await worker.settle();
    await beside.sql(`update children set "stopAt" = 1 where "stopAt" is not null and state <> 'done'`);
    await tend(open());
    expect(await tend(open())).toEqual([]);
    expect(await worker.settle()).toEqual([]);
    expect(await worker.claim(laneKey)).toMatchObject({ kind: 'idle' });
  };

  it('dispatches the join of ten parents that end in the same moment once', async () => {
    const processes = await both();
    const { worker } = processes;
    for (let round = 0; round < rounds; round++) {
      const { taskId, lane } = await worker.begin(fan(10));
      const ends = await claimed(
        processes,
        taskId,
        fan(10)
          .slice(0, -1)
          .map(({ id }) => id),
      );
      await Promise.all(ends.map((end) => end()));
      const { subtasks } = await worker.show(taskId);
      expect(subtasks.at(-1)).toMatchObject({ id: 'join', state: 'dispatched', tries: 1 });
      await worker.finish(taskId, 'join');
      await worker.answer(await worker.claimRun(lane.key), 'all');
      expect(await worker.show(taskId)).toMatchObject({ state: 'done', result: 'all' });
      await expectRest(worker, lane.key);
    }
  });

  it.each([
    ['a stop of the task', 'task'],
    ['a stop of one subtask', 'subtask'],
    ['/stop in the conversation', 'person'],
    ['settling', 'settle'],
    ['a reply from outside', 'reply'],
  ])('agrees on one end when peers end together with %s', async (_, what) => {
    const processes = await both();
    const { worker, stores } = processes;
    for (let round = 0; round < rounds; round++) {
      const { taskId, lane, conversation } = await worker.begin(fan(4));
      const ends = await claimed(processes, taskId, ['n0', 'n1', 'n2', 'n3']);
      const other = {
        task: () => stores[1].write(stopTaskOrSubtask, { ...order, taskId }),
        subtask: () => stores[1].write(stopTaskOrSubtask, { ...order, taskId, subtaskId: 'n1' }),
        person: () =>
          worker.accept(aCommand(conversation, { kind: 'stop', isPrivileged: true, isAll: false })),
        settle: () => Promise.all(stores.map((store) => store.write(settleTask, { taskId }))),
        reply: () =>
          stores[1].write(replyToSubtask, {
            ...order,
            taskId,
            subtaskId: 'n2',
            status: 'done',
            body: 'mine',
          }),
      }[what];
      await Promise.all([...ends.map((end) => end()), other?.()]);
      const { state, subtasks } = await worker.show(taskId);
      const [join] = subtasks.slice(-1);
      const states = subtasks.slice(0, -1).map((node) => node.state);
      // The join has begun only if all of its parents had ended before the stop.
      const hasBegun = states.every((each) => each === 'done');
      expect(join?.state).toBe(state === 'executing' ? 'dispatched' : hasBegun ? 'failed' : 'skipped');
      if (state === 'executing') await worker.finish(taskId, 'join');
      await worker.settle();
      const last = await worker.claim(lane.key);
      if (last.kind === 'run') await worker.answer(last.run, 'answer');
      const end = await worker.show(taskId);
      expect(end.state).toBe(end.subtasks.some((node) => node.state === 'failed') ? 'failed' : 'done');
      await expectRest(worker, lane.key);
    }
  });

  it('dispatches a wide graph in several steps, however many processes settle it', async () => {
    const { worker, stores } = await both();
    const wide = Array.from({ length: 3 * dispatchedAtOnce }, (_, n) => ({ id: `n${n}`, after: ['root'] }));
    const { taskId } = await worker.begin([{ id: 'root' }, ...wide]);
    await worker.finish(taskId, 'root');
    const dispatched = async () =>
      (await worker.show(taskId)).subtasks.filter(({ state }) => state === 'dispatched').length;
    expect(await dispatched()).toBe(dispatchedAtOnce);
    await Promise.all(stores.map((store) => store.write(settleTask, { taskId })));
    expect(await dispatched()).toBe(3 * dispatchedAtOnce);
    // A stop reaches all of them, also those that come in the same moment.
    await stores[0].write(stopTaskOrSubtask, { ...order, taskId });
    await worker.settle();
    expect(await tend(open())).toEqual([]);
    expect(await worker.settle()).toEqual([]);
  });
});

/** Ignores that a run was lost or has to stop; nothing else may fail. */
function ignoreLost(error: unknown): void {
  if (!hasCode(error, 'stale_epoch') && !hasCode(error, 'invalid_input')) throw error;
}
