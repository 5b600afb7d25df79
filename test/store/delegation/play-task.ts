/** Plays one task in random steps of two processes, compares it with the model, and checks what is left in the end. */
import { expect } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import type { Store } from '../../../src/store/base/command.ts';
import { dispatchedAtOnce } from '../../../src/store/children/subtasks.ts';
import { replyToSubtask, retryTask, stopTaskOrSubtask } from '../../../src/store/delegation/operate-task.ts';
import { settleTask } from '../../../src/store/delegation/settle-task.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { releaseFailedRun } from '../../../src/store/lanes/leases.ts';
import { sweepChild } from '../../../src/store/lanes/sweep.ts';
import type { GraphEvent } from '../../../src/store/tasks/graph.ts';
import { aCommand, aMessage } from '../builders.ts';
import type { Beside } from '../each-database.ts';
import { fenceOf } from '../family.ts';
import { GraphModel, type ModelNode } from '../tasks/graph-model.ts';
import { aCoordinator } from './a-coordinator.ts';
import { readTaskWorld, type TaskWorld } from './task-world.ts';

export type Roll = { readonly what: number; readonly who: number; readonly which: number };

type Play = {
  readonly stores: readonly [Store, Store];
  readonly beside: Beside;
  readonly nodes: readonly ModelNode[];
  /** Steps of a batch run at the same time. */
  readonly batches: readonly (readonly Roll[])[];
};

type Worker = ReturnType<typeof aCoordinator>;
type Job = { readonly run: ClaimedRun; readonly worker: Worker; readonly store: Store };
const order = { by: 'console', authority: 'owner' } as const;

export async function playTask({ stores, beside, nodes, batches }: Play): Promise<void> {
  const [store] = stores;
  const workers = stores.map((each, n) => ({
    store: each,
    worker: aCoordinator(each, { name: `worker-${n}` }),
  }));
  const [first] = workers;
  if (!first) throw new Error('test error: no worker');
  const { worker } = first;
  // Every fifth is the coordinator's own.
  const asked = nodes.map(({ dependsOn, ...node }, n) => ({
    ...node,
    after: dependsOn,
    agent: n % 5 === 4 ? 'self' : 'main',
  }));
  const { taskId, lane, conversation, run } = await worker.begin(asked);
  const world = () => readTaskWorld(store, { sessionId: run.sessionId, taskId });
  const isExact = batches.every((batch) => batch.length === 1) && nodes.length <= dispatchedAtOnce;
  const model = new GraphModel(nodes);
  model.play({ kind: 'go' });
  let jobs: readonly Job[] = [];
  let nested: readonly { readonly childId: string; readonly id: string; readonly try: number }[] = [];
  let now = await world();

  const drop = (job: Job) => {
    jobs = jobs.filter((each) => each !== job);
  };
  const claim = async (laneKey: string, { worker: by, store: own }: (typeof workers)[number]) => {
    const claimed = await by.claim(laneKey);
    if (claimed.kind !== 'run') return;
    jobs = [
      ...jobs.filter((job) => job.run.laneKey !== laneKey),
      { run: claimed.run, worker: by, store: own },
    ];
  };
  /** What the model learns from the end of a run. */
  const eventOf = ({ run: { laneKey, runId } }: Job, how: 'natural' | 'error'): GraphEvent | undefined => {
    const status = how === 'natural' ? 'done' : 'failed';
    const child = now.children.find((one) => one.laneKey === laneKey);
    const node = child && now.nodes.find(({ childId }) => childId === child.id);
    // It hasn't ended while its own task is open.
    if (node && !now.tasks.some((one) => one.sessionId === child.id))
      return { kind: 'reply', id: node.id, try: node.tries, status };
    const item = now.runs.find(({ id }) => id === runId)?.taskItem ?? '';
    const [, id, tries] = item.startsWith(`task:${taskId}:`) ? (/:([^:]+):(\d+)$/.exec(item) ?? []) : [];
    return id === undefined ? undefined : { kind: 'reply', id, try: Number(tries), status };
  };
  const end = async (job: Job, how: 'natural' | 'error') => {
    drop(job);
    const cut = how === 'error' ? 'error' : job.run.cancelReason;
    if (cut === undefined) {
      const { cancelReason, steers } = await job.worker.answer(job.run, `result of ${job.run.laneKey}`);
      if (cancelReason !== undefined) await job.worker.fail(job.run, cancelReason);
      else if (steers.length > 0) {
        jobs = [...jobs, job];
        return;
      } else learn(eventOf(job, 'natural'));
    } else {
      await job.worker.fail(job.run, cut);
      learn(eventOf(job, cut === 'error' ? 'error' : 'natural'), cut);
    }
  };
  /** A run that was asked to stop tells the model nothing: what has stopped it did. */
  const learn = (event: GraphEvent | undefined, cut?: string) => {
    if (event && (cut === undefined || cut === 'error')) model.play(event);
  };

  const step = async ({ what, who, which }: Roll): Promise<void> => {
    const me = workers[who] ?? first;
    const job = jobs[which % Math.max(1, jobs.length)];
    const live = now.children.filter(({ state }) => state !== 'done');
    const laneKeys = [lane.key, ...live.map(({ laneKey }) => laneKey)];
    const node = now.nodes[which % now.nodes.length];
    if (!node) return;
    if (what < 30) await claim(laneKeys[which % laneKeys.length] ?? lane.key, me);
    else if (what < 60) {
      if (job) await end(job, 'natural');
    } else if (what < 68) {
      if (job) await end(job, 'error');
    } else if (what < 72) {
      // Its process dies: the lease expires, and the next claim resumes the run.
      if (job) drop(job);
      if (job) await job.store.write(releaseFailedRun, { ...fenceOf(job.run), pauseMs: 0 });
    } else if (what < 75) {
      // A peer coordinates, too.
      const child = now.children.find(({ laneKey }) => laneKey === job?.run.laneKey);
      const of = now.nodes.find(
        ({ childId, state }) => child && childId === child.id && state === 'dispatched',
      );
      const isFresh = child && of && !now.tasks.some((one) => one.sessionId === child.id);
      if (!job || !isFresh || job.run.cancelReason !== undefined) return;
      drop(job);
      const below = [
        { id: 'x', onFailure: 'skip' as const },
        { id: 'y', after: ['x'], agent: 'self' },
      ];
      const begun = await job.worker.ask(job.run, below);
      if (begun.kind === 'delegated') nested = [...nested, { childId: child.id, id: of.id, try: of.tries }];
      jobs = [...jobs, job];
      if (begun.kind !== 'refused') {
        now = await world();
        await end(job, 'natural');
      }
    } else if (what < 78) {
      const { kind } = await me.store.write(stopTaskOrSubtask, { ...order, taskId, subtaskId: node.id });
      if (kind === 'done')
        model.play({ kind: 'reply', id: node.id, try: node.tries, status: 'failed', isFinal: true });
    } else if (what < 79) {
      const { kind } = await me.store.write(stopTaskOrSubtask, { ...order, taskId });
      if (kind === 'done') model.play({ kind: 'stop' });
    } else if (what < 83) {
      const { kind } = await me.store.write(retryTask, { ...order, taskId });
      if (kind === 'done') model.play({ kind: 'reopen' });
    } else if (what < 86) {
      const status = which % 3 === 0 ? 'failed' : 'done';
      const reply = { ...order, taskId, subtaskId: node.id, status, body: 'from outside' } as const;
      const { kind } = await me.store.write(replyToSubtask, reply);
      if (kind === 'recorded')
        model.play({ kind: 'reply', id: node.id, try: node.tries, status, isFinal: true });
    } else if (what < 89) {
      const child = live[which % Math.max(1, live.length)];
      if (child) await timeOut(child.id, me.store);
      const of = now.nodes.find(({ childId }) => childId === child?.id);
      const isPlain = nested.every(({ childId }) => childId !== child?.id);
      if (child && of && isPlain && child.stopAt === null)
        model.play({ kind: 'reply', id: of.id, try: of.tries, status: 'failed' });
    } else if (what < 97) {
      for (const task of now.tasks) await me.store.write(settleTask, { taskId: task.id });
      await me.worker.settle();
    } else if (what < 98) {
      await worker.accept(aMessage({ conversation, text: 'and?' }));
    } else if (what < 99 && batches.length % 3 === 0) {
      await worker.accept(aCommand(conversation, { kind: 'stop', isPrivileged: true, isAll: false }));
      model.play({ kind: 'stop' });
    } else await sweep(me.store);
  };
  const timeOut = async (childId: string, by: Store) => {
    await beside.sql(`update children set "deadlineAt" = 1 where id = '${childId}'`);
    await by.write(sweepChild, { childId });
    await beside.sql(`update children set "stopAt" = 1 where id = '${childId}' and state <> 'done'`);
    await by.write(sweepChild, { childId });
  };
  const sweep = async (by: Store) => {
    for (const { id, state } of now.children)
      if (state !== 'done') await by.write(sweepChild, { childId: id });
  };
  const compare = async () => {
    now = await world();
    for (const each of nested) {
      const child = now.children.find(({ id }) => id === each.childId);
      if (child?.state !== 'done') continue;
      nested = nested.filter((one) => one !== each);
      const own = now.tasks.findLast(({ sessionId }) => sessionId === child.id);
      const isDone = child.status === 'completed' && own?.error === null;
      const isFinal = child.status === 'stopped';
      model.play({ kind: 'reply', id: each.id, try: each.try, status: isDone ? 'done' : 'failed', isFinal });
    }
    if (!isExact) return;
    expect(statesOf(now)).toEqual(
      Object.fromEntries([...model.known].map(([id, { state, tries }]) => [id, `${state} ${tries}`])),
    );
    expect(possible[model.status]).toContain(now.task.state);
  };

  for (const batch of batches) {
    await Promise.all(batch.map((roll) => step(roll).catch(ignoreLost)));
    await compare();
  }
  // Everything comes to rest: whatever may run finishes, and the sweep does its part.
  for (let round = 0; round < 300; round++) {
    for (const job of jobs) {
      await end(job, 'natural').catch(ignoreLost);
      await compare();
    }
    await beside.sql(`update children set "stopAt" = 1 where "stopAt" is not null and state <> 'done'`);
    await sweep(store);
    await compare();
    for (const task of now.tasks) await store.write(settleTask, { taskId: task.id });
    await compare();
    if (now.isAtRest && jobs.length === 0) break;
    const live = now.children.filter(({ state }) => state !== 'done');
    for (const laneKey of [lane.key, ...live.map((child) => child.laneKey)]) await claim(laneKey, first);
    now = await world();
  }
  checkRest(await world(), await worker.settle());
}

/** Ignores that a run was lost to another holder or asked to stop, and so can't continue; nothing else may fail. */
function ignoreLost(error: unknown): void {
  if (!hasCode(error, 'stale_epoch') && !hasCode(error, 'invalid_input')) throw error;
}

/** States of a task whose graph is in the model's state. */
const possible = {
  open: ['executing'],
  done: ['aggregating', 'done', 'failed'],
  failed: ['aggregating', 'failed'],
  stopped: ['failed'],
} as const;

const statesOf = ({ nodes }: TaskWorld) =>
  Object.fromEntries(nodes.map(({ id, state, tries }) => [id, `${state} ${tries}`]));

function checkRest(world: TaskWorld, unsettled: readonly string[]): void {
  const { task, tasks, allNodes, children, items, messages, trees } = world;
  expect(world.isAtRest).toBe(true);
  const ids = new Set(tasks.map(({ id }) => id));
  expect(unsettled.filter((id) => ids.has(id))).toEqual([]);
  for (const { state, endedAt, told, isUnsettled } of tasks) {
    expect(state).toMatch(/^(done|failed)$/);
    expect({ isEnded: endedAt !== null, isTold: told !== null, isUnsettled }).toEqual({
      ...{ isEnded: true, isTold: true, isUnsettled: 0 },
    });
  }
  const isFailed = allNodes.some(({ taskId, state }) => taskId === task.id && state === 'failed');
  if (isFailed) expect(task.state).toBe('failed');
  for (const { taskId, id, tries, state, dependsOn, startedAt } of allNodes) {
    expect(state).toMatch(/^(done|failed|skipped)$/);
    const ofNode = messages.filter((one) => one.taskId === taskId && one.subtaskId === id);
    // One dispatch for each try, each answered at most once, in any case dealt with.
    const dispatches = ofNode.filter(({ type }) => type === 'task').map((one) => one.id);
    expect(dispatches.toSorted()).toEqual(
      Array.from({ length: tries }, (_, n) => `${taskId}/${id}/${n + 1}/task`).toSorted(),
    );
    expect(ofNode.filter((one) => one.state === 'new')).toEqual([]);
    const replies = ofNode.filter((one) => one.type === 'reply' && one.state === 'handled');
    expect(replies.length).toBeLessThanOrEqual(tries);
    if (state === 'done') expect(replies.at(-1)).toMatchObject({ status: 'done' });
    for (const parent of dependsOn) {
      const above = allNodes.find((one) => one.taskId === taskId && one.id === parent);
      if (startedAt !== null) {
        expect(above?.state).toMatch(/^(done|skipped)$/);
        expect(above?.endedAt).toBeLessThanOrEqual(startedAt);
      }
    }
  }
  // One turn for the answer at each end, and one run that took each item.
  for (const { id, rounds } of tasks)
    expect(items.filter(({ sourceKey }) => sourceKey?.startsWith(`task:${id}::`)).length).toBe(rounds);
  expect(items.filter(({ state }) => state !== 'ended')).toEqual([]);
  for (const { mode, state, told } of children)
    if (mode === 'task')
      expect({ state, told }).toEqual({ state: 'done', told: told === 'task' ? 'task' : 'none' });
  for (const { live } of trees) expect(live).toBe(0);
}
