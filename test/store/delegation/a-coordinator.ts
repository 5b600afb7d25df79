import { parseJson } from '#channel-kit/parse-json.ts';
import type { TaskRecord } from '../../../src/contracts/task.ts';
import type { Store, StoreQuery } from '../../../src/store/base/command.ts';
import { type DelegateInput, type DelegateResult, delegate } from '../../../src/store/delegation/delegate.ts';
import { settleTask } from '../../../src/store/delegation/settle-task.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { readSweep } from '../../../src/store/lanes/sweep.ts';
import { findTaskRecord } from '../../../src/store/reads/read-tasks.ts';
import { unique } from '../builders.ts';
import { aFamilyWorker, fenceOf } from '../family.ts';

/** A subtask of a test: its agent is `main`, its policy `fail`. */
export type Node = {
  readonly id: string;
  readonly after?: readonly string[];
  readonly agent?: string;
  readonly onFailure?: 'fail' | 'retry' | 'skip';
};

/** Returns one process that works on tasks, with short names for its steps. */
export function aCoordinator(store: Store, over: Parameters<typeof aFamilyWorker>[1] = {}) {
  const family = aFamilyWorker(store, over);

  /** Delegates as the tool does, in a run that then ends without further words. */
  const ask = (
    run: ClaimedRun,
    nodes: readonly Node[],
    more: Partial<DelegateInput> = {},
  ): Promise<DelegateResult> =>
    store.write(delegate, {
      ...fenceOf(run),
      ...{ callId: unique('call'), title: 'a task' },
      subtasks: nodes.map(({ id, after = [], agent = 'main', onFailure = 'fail' }) => ({
        ...{ id, agent, onFailure, dependsOn: after, instructions: `do ${id}`, expected: `what ${id} is` },
      })),
      role: { depth: run.laneKey.split('@').length, profile: 'main', deniedTools: [] },
      limits: { depth: 5, nodes: 200, treeMs: 3_600_000 },
      ...more,
    });

  /** Delegates in a conversation of that mode, ends the run, and returns the task's id. */
  const begin = async (
    nodes: readonly Node[],
    more: Partial<DelegateInput> = {},
    mode?: Parameters<typeof family.begin>[0],
  ) => {
    const { run, lane, conversation } = await family.begin(mode);
    const taskId = await delegateIn(run, nodes, more);
    return { taskId, run, lane, conversation };
  };

  /** Delegates in that run and ends it. */
  const delegateIn = async (
    run: ClaimedRun,
    nodes: readonly Node[],
    more: Partial<DelegateInput> = {},
  ): Promise<string> => {
    const asked = await ask(run, nodes, more);
    if (asked.kind === 'refused') throw new Error(`refused: ${asked.reason}`);
    await family.answer(run, 'I have asked others.');
    return asked.taskId;
  };

  const show = async (taskId: string): Promise<TaskRecord> => {
    const task = await store.read(findTaskRecord, { taskId });
    if (!task) throw new Error(`there is no task ${taskId}`);
    return task;
  };

  /** Returns the states of the nodes by id. */
  const states = async (taskId: string) =>
    Object.fromEntries((await show(taskId)).subtasks.map(({ id, state }) => [id, state]));

  /** Claims the peer of a subtask. */
  const claimPeer = async (taskId: string, id: string): Promise<ClaimedRun> => {
    const childId = (await show(taskId)).subtasks.find((node) => node.id === id)?.childId;
    const laneKey = childId && (await store.read(laneOfChild, { childId }));
    if (!laneKey) throw new Error(`${id} has no peer`);
    return family.claimRun(laneKey);
  };

  /** Lets the peer of a subtask answer. */
  const finish = async (taskId: string, id: string, text = `result of ${id}`) =>
    family.answer(await claimPeer(taskId, id), text);

  /** Does what the sweep of any process would do about tasks. */
  const settle = async () => {
    const { tasks } = await store.read(readSweep, {});
    for (const taskId of tasks) await store.write(settleTask, { taskId });
    return tasks;
  };

  /** Returns what the model has read at the beginning of the run. */
  const promptOf = async ({ runId }: ClaimedRun): Promise<string> => store.read(promptOfRun, { runId });

  return {
    ...family,
    converse: family.begin,
    ask,
    begin,
    delegateIn,
    show,
    states,
    claimPeer,
    finish,
    settle,
    promptOf,
  };
}

const laneOfChild: StoreQuery<{ readonly childId: string }, string | undefined> = {
  query: 'laneOfChild',
  run: async (tx, { childId }) =>
    (await tx.db.selectFrom('children').select('laneKey').where('id', '=', childId).executeTakeFirst())
      ?.laneKey,
};

const promptOfRun: StoreQuery<{ readonly runId: string }, string> = {
  query: 'promptOfRun',
  run: async (tx, { runId }) => {
    const rows = await tx.db
      .selectFrom('transcript')
      .select('parts')
      .where('runId', '=', runId)
      .where('role', '=', 'user')
      .orderBy('position')
      .execute();
    return rows
      .flatMap(({ parts }) => parseJson(parts) as { data: { text?: string } }[])
      .map(({ data }) => data.text ?? '')
      .join('\n');
  },
};
