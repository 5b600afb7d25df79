import type { Authority } from '#contracts/outcome.ts';
import type { StepTx, StoreCommand } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { findRow } from '../base/row-access.ts';
import { lockLineage, readChildIn } from '../children/child.ts';
import { mayDirect } from '../children/operate-child.ts';
import {
  moveOn,
  type RecordedReply,
  recordReply,
  type SubtaskReply,
  stopTask,
} from '../children/subtasks.ts';
import { messageIdOf, readNodes, readTask, reopenTask, type Task } from '../tasks/task.ts';

/** Which task or subtask, and who wants something of it. */
export type TaskOrder = {
  readonly taskId: string;
  /** Absent: the whole task. */
  readonly subtaskId?: string;
  /** `<channel>:<peer>`, `console` or a program's name. */
  readonly by: string;
  readonly authority: Authority;
};

/**
 * `ended`: it isn't open any more, or, for a retry, hasn't failed. `lesser-rights`: it would work with more rights than
 * the sender has; to stop it needs none of them. `gone`: its session has ended. `out-of-time`: its tree has used up its time.
 */
export type OperatedTask = {
  readonly kind: 'done' | 'ended' | 'unknown' | 'lesser-rights' | 'gone' | 'out-of-time';
  readonly effects: Effects;
};

/**
 * Stops a task, or one of its subtasks, whose failure then counts as its policy says. `settleTask` stops the peers at
 * work. Repeating it changes nothing.
 */
export const stopTaskOrSubtask: StoreCommand<TaskOrder, OperatedTask> = {
  name: 'stopTask',
  run: (tx, order) =>
    operate(tx, order, async (task, effects) => {
      const { subtaskId, by } = order;
      if (task.endedAt !== null) return 'ended';
      const error = `stopped by ${by}`;
      if (subtaskId === undefined) {
        await stopTask(tx, task, error, effects);
        return 'done';
      }
      const node = (await readNodes(tx, task.id)).find(({ id }) => id === subtaskId);
      if (!node) return 'unknown';
      const reply = { taskId: task.id, subtaskId, try: node.tries, body: '', from: 'human' } as const;
      const failed = { ...reply, status: 'failed', error, isFinal: true, leavesWork: true } as const;
      return endOf(await recordReply(tx, failed, effects));
    }),
};

/** Begins again with the subtasks of a failed task that have failed or never started. Their tries go on. */
export const retryTask: StoreCommand<TaskOrder, OperatedTask> = {
  name: 'retryTask',
  run: (tx, order) =>
    operate(tx, order, async (task, effects, sessionId) => {
      if (!mayDirect(order.authority, task)) return 'lesser-rights';
      if (task.state !== 'failed') return 'ended';
      const coordinator = await readChildIn(tx, task.laneKey);
      // One that is being stopped has had everything below it stopped already.
      const isLeaving = coordinator && (coordinator.endedAt !== null || coordinator.stopAt !== null);
      if (sessionId !== task.sessionId || isLeaving) return 'gone';
      const nodes = await readNodes(tx, task.id);
      if (nodes.length === 0) return 'ended';
      const tree = await findRow(tx, 'trees', task.treeId, ['deadlineAt']);
      if (tree && tree.deadlineAt <= tx.now) return 'out-of-time';
      await reopenTask(tx, task.id);
      const open = { ...task, state: 'executing' as const, error: null, endedAt: null };
      await moveOn(tx, { task: open, nodes, event: { kind: 'reopen' }, error: '' }, effects);
      return 'done';
    }),
};

/** `late`: its subtask isn't waiting for it any more. `orphan`: there is no such subtask. Both are archived. */
export type OutsideReply = {
  readonly kind: RecordedReply | 'lesser-rights';
  readonly effects: Effects;
};

/**
 * Records a reply that somebody gives from outside in the place of the peer, which is stopped. Repeating it changes
 * nothing: the reply that counts stays `recorded`, and one that doesn't is archived once.
 */
export const replyToSubtask: StoreCommand<
  Required<TaskOrder> & { readonly status: 'done' | 'failed'; readonly body: string },
  OutsideReply
> = {
  name: 'replyToSubtask',
  run: async (tx, order) => {
    const { taskId, subtaskId, status, body, by: from } = order;
    const reply = { taskId, subtaskId, status, body, from, isFinal: true, leavesWork: true } as const;
    let recorded: RecordedReply = 'orphan';
    const { kind, effects } = await operate(tx, order, async (task, made) => {
      if (!mayDirect(order.authority, task)) return 'lesser-rights';
      const node = (await readNodes(tx, task.id)).find(({ id }) => id === subtaskId);
      const of = { taskId, subtaskId, try: node?.tries ?? 0 };
      recorded = (await isRecorded(tx, { ...reply, ...of }))
        ? 'recorded'
        : await recordReply(tx, { ...reply, ...of }, made);
      return 'done';
    });
    if (kind === 'lesser-rights') return { kind, effects };
    if (kind === 'unknown') await recordReply(tx, { ...reply, try: 0 }, effects);
    return { kind: recorded, effects };
  },
};

async function isRecorded(tx: StepTx, { status, body, from, ...of }: SubtaskReply): Promise<boolean> {
  const sent = await findRow(tx, 'taskMessages', messageIdOf(of, 'reply'), ['sender', 'status', 'body']);
  return sent?.sender === from && sent.status === status && sent.body === body;
}

async function operate(
  tx: StepTx,
  { taskId }: TaskOrder,
  act: (task: Task, effects: Effects, sessionId: string) => Promise<OperatedTask['kind']>,
): Promise<OperatedTask> {
  const effects = noEffects();
  const seen = await readTask(tx, taskId);
  const lane = seen && (await lockLineage(tx, seen.laneKey));
  const task = lane && (await readTask(tx, taskId));
  if (!task) return { kind: 'unknown', effects };
  return { kind: await act(task, effects, lane.sessionId), effects };
}

function endOf(recorded: RecordedReply): OperatedTask['kind'] {
  return ({ recorded: 'done', late: 'ended', orphan: 'unknown' } as const)[recorded];
}
