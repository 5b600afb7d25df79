import type { StepTx, StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { type Child, lockLineage, readChild } from '../children/child.ts';
import { cancelOwnRun, cancelWaitingItems, type OwnItems, readOwnItems } from '../children/own-items.ts';
import { lockBelow, stopBranch } from '../children/stop-tree.ts';
import { moveOn, recordReply, toldOf } from '../children/subtasks.ts';
import { lockLanes } from '../rows/lane.ts';
import {
  answerItemOf,
  endTask,
  markUnsettled,
  readOpenNodes,
  readTask,
  subtaskItemOf,
  type Task,
  type TaskNode,
  taskItemsOf,
} from '../tasks/task.ts';

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
    const nodes = await readOpenNodes(tx, taskId);
    await stopLeftPeers(tx, { task, nodes }, effects);
    const own = await readOwnItems(tx, task);
    const isWanted = wantedOf(task, nodes);
    await cancelWaitingItems(tx, own, isWanted);
    await cancelOwnRun(tx, lane, own, { isWanted, effects });
    if (task.isUnsettled === 1) await markUnsettled(tx, taskId, false);
    if (task.endedAt === null) await continueTask(tx, { task, nodes, own }, effects);
    return effects;
  },
};

type Graph = { readonly task: Task; readonly nodes: readonly TaskNode[] };

/** Stops the peers whose subtasks have ended without them, and all below those. Their lanes are locked level by level. */
async function stopLeftPeers(tx: StepTx, graph: Graph, effects: Effects): Promise<void> {
  const left = await readLeftPeers(tx, graph);
  if (left.length === 0) return;
  await lockLanes(
    tx,
    left.map(({ laneKey }) => laneKey),
  );
  await lockBelow(
    tx,
    left.map(({ id }) => id),
  );
  for (const { id } of left) {
    const peer = await readChild(tx, id);
    if (peer?.endedAt === null && peer.stopAt === null) await stopBranch(tx, peer, 'asked', effects);
  }
}

async function readLeftPeers(tx: Tx, { task, nodes }: Graph): Promise<readonly Peer[]> {
  const working = new Set(nodes.flatMap(({ state, childId }) => (state === 'dispatched' ? [childId] : [])));
  const peers = await readPeers(tx, task);
  return peers.filter(({ id, stopAt }) => stopAt === null && !working.has(id));
}

type Peer = Pick<Child, 'id' | 'laneKey' | 'stopAt'>;

/** Reads the task's peers that haven't ended, oldest first. */
async function readPeers(tx: Tx, { sessionId, runId, callId }: Task): Promise<readonly Peer[]> {
  return callId === null ? [] : livePeers.all(tx, { sessionId, runId, callId });
}

const livePeers = prepared((db, of: QueryParams<{ sessionId: string; runId: string; callId: string }>) =>
  db
    .selectFrom('children')
    .select(['id', 'laneKey', 'stopAt'])
    .where('parentSessionId', '=', of.sessionId)
    .where('endedAt', 'is', null)
    .where('parentRunId', '=', of.runId)
    .where('parentCallId', '=', of.callId)
    .where('mode', '=', 'task')
    .orderBy('createdAt')
    .orderBy('id'),
);

/** Returns a test for the coordinator's own items that still count. */
function wantedOf(task: Task, nodes: readonly TaskNode[]): (sourceKey: string) => boolean {
  const wanted = new Set(nodes.flatMap((node) => (node.state === 'dispatched' ? [itemOf(task, node)] : [])));
  if (task.state === 'aggregating') wanted.add(answerItemOf(task));
  // The message that is the task is wanted until the task ends.
  if (task.endedAt === null) wanted.add(messageItemOf(task));
  return (sourceKey) => wanted.has(sourceKey);
}

function itemOf({ id: taskId }: Task, { id: subtaskId, tries }: TaskNode): string {
  return subtaskItemOf({ taskId, subtaskId, try: tries });
}

function messageItemOf({ id }: Task): string {
  return `${taskItemsOf(id)}main`;
}

/**
 * Dispatches what is ready. It takes an operator to leave a subtask or a task without anybody who works on it, who has
 * cancelled its item: such a subtask has failed, and such a task ends.
 */
async function continueTask(
  tx: StepTx,
  { task, nodes, own }: Graph & { readonly own: OwnItems },
  effects: Effects,
): Promise<void> {
  const inLane = new Set([...own.waiting.map(({ sourceKey }) => sourceKey), own.running]);
  if (task.state !== 'executing') {
    const item = task.state === 'aggregating' ? answerItemOf(task) : messageItemOf(task);
    if (!inLane.has(item)) await endUnanswered(tx, task, effects);
    return;
  }
  const live = new Set((await readPeers(tx, task)).map(({ id }) => id));
  const isLost = (node: TaskNode) =>
    node.state === 'dispatched' &&
    (node.childId === null ? !inLane.has(itemOf(task, node)) : !live.has(node.childId));
  const lost = nodes.filter(isLost);
  const event = { kind: 'go' } as const;
  if (lost.length === 0) return moveOn(tx, { task, nodes, event, error: '' }, effects);
  for (const { id: subtaskId, tries } of lost) {
    const reply = { taskId: task.id, subtaskId, try: tries, status: 'failed', body: '' } as const;
    await recordReply(
      tx,
      { ...reply, from: task.agentId, error: 'nothing works on it any more', isFinal: true },
      effects,
    );
  }
}

async function endUnanswered(tx: StepTx, task: Task, effects: Effects): Promise<void> {
  const error = task.error ?? 'its message was cancelled before it was answered';
  await endTask(tx, task.id, { result: null, error, told: toldOf(task) });
  effects.tasks.push({ id: task.id, laneKey: task.laneKey, isUnsettled: false });
}
