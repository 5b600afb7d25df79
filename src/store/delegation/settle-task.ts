import type { StepTx, StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { findRow } from '../base/row-access.ts';
import { type Child, lockLineage, readLiveChildren } from '../children/child.ts';
import { lockBelow, stopBranch } from '../children/stop-tree.ts';
import { moveOn, recordReply, toldOf } from '../children/subtasks.ts';
import { endItems } from '../rows/item.ts';
import { type Lane, lockLanes } from '../rows/lane.ts';
import { endTask, readNodes, readTask, type Task, type TaskNode, taskItemsOf } from '../tasks/task.ts';
import { cancelRun } from '../waits/parked.ts';

/**
 * Does what earlier steps have left of a task: stops work on subtasks that have ended, dispatches more of
 * what is ready, and ends what nothing works on any more. Safe to repeat. The sweep finds every task that needs it.
 */
export const settleTask: StoreCommand<{ readonly taskId: string }, Effects> = {
  name: 'settleTask',
  run: async (tx, { taskId }) => {
    const effects = noEffects();
    const seen = await readTask(tx, taskId);
    const lane = seen && (await lockLineage(tx, seen.laneKey));
    const task = lane && (await readTask(tx, taskId));
    if (!task) return effects;
    await stopLeftPeers(tx, task, effects);
    const nodes = await readNodes(tx, taskId);
    await cancelOwn(tx, { lane, task, nodes }, effects);
    await markSettled(tx, taskId);
    if (task.endedAt === null && (await isIdle(tx, lane, task))) await endLost(tx, task, effects);
    else if (task.state === 'executing')
      await moveOn(tx, { task, nodes, event: { kind: 'go' }, error: '' }, effects);
    return effects;
  },
};

/** Stops the peers whose subtasks have ended without them, and all below those. Their lanes are locked level by level. */
async function stopLeftPeers(tx: StepTx, task: Task, effects: Effects): Promise<void> {
  const left = await readLeftPeers(tx, task);
  if (left.length === 0) return;
  await lockLanes(
    tx,
    left.map(({ laneKey }) => laneKey),
  );
  await lockBelow(
    tx,
    left.map(({ id }) => id),
  );
  for (const peer of await readLeftPeers(tx, task))
    if (peer.stopAt === null) await stopBranch(tx, peer, 'asked', effects);
}

async function readLeftPeers(tx: Tx, { id, sessionId, runId, callId }: Task): Promise<readonly Child[]> {
  const live = await readLiveChildren(tx, { sessionIds: [sessionId], runIds: [runId] });
  const peers = live.filter(({ mode, parentCallId }) => mode === 'task' && parentCallId === callId);
  if (peers.length === 0) return [];
  const working = new Set(
    (await readNodes(tx, id)).flatMap(({ state, childId }) => (state === 'dispatched' ? [childId] : [])),
  );
  return peers.filter((peer) => !working.has(peer.id));
}

type Scene = { readonly lane: Lane; readonly task: Task; readonly nodes: readonly TaskNode[] };

/** Ends the coordinator's own items of subtasks and answers that are no longer wanted, and the run that works on one. */
async function cancelOwn(tx: StepTx, { lane, task, nodes }: Scene, effects: Effects): Promise<void> {
  const wanted = new Set(
    nodes.flatMap(({ id, state, tries }) =>
      state === 'dispatched' ? [`${taskItemsOf(task.id)}${id}:${tries}`] : [],
    ),
  );
  if (task.state === 'aggregating') wanted.add(`${taskItemsOf(task.id)}:${task.rounds}`);
  // The message that is the task is wanted until the task ends.
  if (task.endedAt === null) wanted.add(`${taskItemsOf(task.id)}main`);
  const open = await tx.db
    .selectFrom('inbox')
    .select(['id', 'sourceKey'])
    .where('laneKey', '=', lane.key)
    .where(isOpenItem())
    .where('source', '=', 'task')
    .execute();
  const isGone = (sourceKey: string | null) =>
    sourceKey?.startsWith(taskItemsOf(task.id)) === true && !wanted.has(sourceKey);
  const gone = open.filter(({ sourceKey }) => isGone(sourceKey));
  await endItems(
    tx,
    gone.map(({ id }) => id),
    { outcome: 'cancelled', outcomeReason: 'stop' },
  );
  const run = lane.runId === null ? undefined : await findRow(tx, 'runs', lane.runId, ['taskItem']);
  if (run && isGone(run.taskItem)) await cancelRun(tx, lane, { reason: 'stop', effects });
}

/** Says whether nothing works on the task: no run, no item in its lane, no peer. */
async function isIdle(tx: Tx, lane: Lane, { sessionId }: Task): Promise<boolean> {
  if (lane.runId !== null) return false;
  const item = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('laneKey', '=', lane.key)
    .where(isOpenItem())
    .limit(1)
    .executeTakeFirst();
  return item === undefined && (await readLiveChildren(tx, { sessionIds: [sessionId] })).length === 0;
}

/** Ends subtasks that nobody works on, or the task itself if nobody will answer it. */
async function endLost(tx: StepTx, task: Task, effects: Effects): Promise<void> {
  const nodes = await readNodes(tx, task.id);
  const lost = nodes.filter(({ state }) => state === 'dispatched');
  const from = task.agentId;
  for (const { id: subtaskId, tries } of lost) {
    const reply = { taskId: task.id, subtaskId, try: tries, status: 'failed', body: '', from } as const;
    await recordReply(tx, { ...reply, error: 'nothing works on it any more' }, effects);
  }
  if (lost.length > 0) return;
  if (nodes.some(({ state }) => state === 'pending'))
    return moveOn(tx, { task, nodes, event: { kind: 'go' }, error: '' }, effects);
  const error = task.error ?? 'its message was cancelled before it was answered';
  await endTask(tx, task.id, { result: null, error, told: toldOf(task) });
  effects.tasks.push({ id: task.id, laneKey: task.laneKey, isUnsettled: false });
}

async function markSettled(tx: Tx, id: string): Promise<void> {
  await tx.db.updateTable('tasks').set({ isUnsettled: 0 }).where('id', '=', id).execute();
}
