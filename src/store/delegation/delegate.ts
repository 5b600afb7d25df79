import { createHash } from 'node:crypto';
import type { ChildRole } from '#contracts/child.ts';
import type { DelegationRefusal, TaskLimits } from '#contracts/task.ts';
import type { StepTx, StoreCommand } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { changeRow, plus, readRow } from '../base/row-access.ts';
import { base32Of, readChild } from '../children/child.ts';
import { lockTree } from '../children/spawn-child.ts';
import { isOwnSubtask, moveOn } from '../children/subtasks.ts';
import { lockLaneAt } from '../rows/lane.ts';
import { assertRunActive, type RunFence } from '../rows/run.ts';
import {
  beginCoordinating,
  insertSubtasks,
  insertTask,
  type NewSubtask,
  readDispatchOf,
  readNodes,
  readOpenTasks,
  readTask,
  type Task,
  taskIn,
} from '../tasks/task.ts';

export type DelegateInput = RunFence & {
  readonly callId: string;
  readonly title: string;
  /** A graph without cycles, whose agents exist and may be asked. */
  readonly subtasks: readonly NewSubtask[];
  /** Rights of the peers. */
  readonly role: ChildRole;
  readonly limits: TaskLimits;
};

export type DelegateResult =
  /** `attached`: the call was made before. */
  | { readonly kind: 'delegated' | 'attached'; readonly taskId: string; readonly effects: Effects }
  | { readonly kind: 'refused'; readonly reason: DelegationRefusal; readonly limit: number };

/**
 * Makes a task of the run into a graph, and dispatches what depends on nothing: one commit, together with the check of
 * the limits. A task that the run was sent as a message becomes that task; otherwise a new one begins. The call is the
 * idempotency key: a repeat returns the same task. Throws `stale_epoch`, and `invalid_input` for a run that was asked to
 * stop or has ended.
 */
export const delegate: StoreCommand<DelegateInput, DelegateResult> = {
  name: 'delegate',
  run: async (tx, input) => {
    const { laneKey, runId, callId, subtasks, limits } = input;
    const { agentId } = await lockLaneAt(tx, laneKey, input.epoch);
    const { taskItem, ...run } = await readRow(tx, 'runs', runId, runColumns);
    const sent = (await readOpenTasks(tx, { sessionIds: [run.sessionId], runIds: [runId] })).find(
      ({ caller }) => caller !== null,
    );
    const id = sent?.id ?? taskIdOf([run.sessionId, runId, callId]);
    const known = await readTask(tx, id);
    if (known?.callId === callId) return { kind: 'attached', taskId: id, effects: noEffects() };
    await assertRunActive(tx, runId);
    const refused = (reason: DelegationRefusal, limit: number) =>
      ({ kind: 'refused', reason, limit }) as const;
    // Two graphs of one message would leave open which of them answers it, and the coordinator's own subtask is part of
    // one that waits for this run's words. So does the program whose message this run answers.
    if (sent?.callId != null || isOwnSubtask(taskItem) || (await isForProgram(tx, taskItem, id)))
      return refused('task_is_open', 1);
    const peer = await readChild(tx, run.sessionId);
    if ((peer?.depth ?? 0) + 1 > limits.depth) return refused('too_deep', limits.depth);
    const tree = await lockTree(tx, { ...run, treeMs: limits.treeMs });
    if (tx.now >= tree.deadlineAt) return refused('tree_out_of_time', Math.round(limits.treeMs / 1000));
    if (tree.nodes + subtasks.length > limits.nodes)
      return refused('too_many_subtasks', limits.nodes - tree.nodes);
    await changeTree(tx, run.treeId, subtasks.length);
    const role = JSON.stringify(input.role);
    if (sent) await beginCoordinating(tx, id, { runId, callId, role });
    else {
      const above = peer && (await readDispatchOf(tx, peer.id));
      await insertTask(tx, {
        ...run,
        ...{ id, laneKey, agentId, runId, callId, role, title: input.title, instructions: '' },
        ...{ parentTaskId: above?.taskId ?? null, parentSubtaskId: above?.subtaskId ?? null },
        ...{ caller: null, head: null, mode: 'coordinating', state: 'executing', isUnsettled: 0 },
      });
    }
    await insertSubtasks(tx, id, subtasks);
    const effects = noEffects();
    await begin(tx, id, effects);
    return { kind: 'delegated', taskId: id, effects };
  },
};

/** Says whether the run's words are the reply to a message of a program, other than by making that message a graph. */
async function isForProgram(tx: StepTx, taskItem: string | null, ownId: string): Promise<boolean> {
  const taskId = taskIn(taskItem);
  if (taskId === undefined || taskId === ownId) return false;
  const task = await readTask(tx, taskId);
  return task?.endedAt === null && task.caller !== null;
}

const runColumns = ['sessionId', 'treeId', 'route', 'authority', 'taskItem'] as const;

/** Counts the subtasks against the tree, whose row is locked. */
async function changeTree(tx: StepTx, treeId: string, nodes: number): Promise<void> {
  await changeRow(tx, 'trees', treeId, { nodes: plus(nodes) });
}

async function begin(tx: StepTx, id: string, effects: Effects): Promise<void> {
  const task = await readTask(tx, id);
  if (task)
    await moveOn(tx, { task, nodes: await readNodes(tx, id), event: { kind: 'go' }, error: '' }, effects);
}

/** Returns the id of a task: a hash of what makes it unique. */
export function taskIdOf(parts: readonly string[]): Task['id'] {
  return base32Of(
    createHash('sha256')
      .update(JSON.stringify(['task', ...parts]))
      .digest(),
  );
}
