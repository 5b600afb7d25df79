/**
 * How a task's graph moves: whatever ends a subtask records its reply here, in its own transaction, and what follows
 * from it becomes rows in the same commit. There is no coordinator process, so any worker may be the one.
 *
 * The callers hold the lock of the coordinator's lane and those above it, and may hold those of one peer. Peers that
 * have to stop are left to `settleTask`, since other lanes must not be locked here.
 */
import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { parseJson } from '#channel-kit/parse-json.ts';
import type { ChildRole } from '#contracts/child.ts';
import type { SessionKey } from '#contracts/ids.ts';
import type { Authority } from '#contracts/outcome.ts';
import { coordinatorItself, type TaskTold } from '#contracts/task.ts';
import type { StepTx, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { json } from '../base/json.ts';
import { newRowId } from '../base/keys.ts';
import { excerptOf } from '../base/one-line.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { findRow, oneOf } from '../base/row-access.ts';
import { enqueueItem, type InnerItem } from '../items/enqueue-item.ts';
import { lockLane } from '../rows/lane.ts';
import { advance, type GraphEvent } from '../tasks/graph.ts';
import {
  answerItemOf,
  beginAggregating,
  type Dispatch,
  endSubtask,
  endTask,
  markDispatched,
  markHandled,
  messageIdOf,
  postMessage,
  readNodes,
  readOpenNodes,
  readOpenTasks,
  readTask,
  reopenSubtask,
  subtaskItemOf,
  type Task,
  type TaskNode,
  touchTask,
} from '../tasks/task.ts';
import { type Contribution, subtaskPrompt, synthesisPrompt } from '../tasks/task-texts.ts';
import { base32Of, childLane, innerContent, insertChild, isChildLane, statusOfEnd } from './child.ts';
import { cancelWaitingItems, readOwnItems } from './own-items.ts';
import { readRunText } from './read-result.ts';
import { openSession } from './spawn-child.ts';

/** Most subtasks that one transaction dispatches; the others follow in the next ones. */
export const dispatchedAtOnce = 25;

/** Answer of a peer, or of the coordinator itself, to a subtask. */
export type SubtaskReply = Dispatch & {
  readonly status: 'done' | 'failed';
  /** The result, or as much of it as there is. */
  readonly body: string;
  /** Why it failed. */
  readonly error?: string;
  /** It must not be tried again. */
  readonly isFinal?: boolean;
  /** Who replies: an agent's id, or `human`. */
  readonly from: string;
  /** Somebody is still at work on it, and has to stop. */
  readonly leavesWork?: boolean;
};

/** `late`: the try isn't current any more, or its task isn't executing. `orphan`: there is no such subtask. */
export type RecordedReply = 'recorded' | 'late' | 'orphan';

/**
 * Records the reply and moves the graph on: dependants that became ready are dispatched, a failure is tried again, or
 * the coordinator gets its turn. Only the current try counts, once; every other reply is archived.
 */
export async function recordReply(tx: StepTx, reply: SubtaskReply, effects: Effects): Promise<RecordedReply> {
  const task = await readTask(tx, reply.taskId);
  const nodes = task?.state === 'executing' ? await readOpenNodes(tx, task.id) : [];
  const node = nodes.find(({ id }) => id === reply.subtaskId);
  const isCurrent = node?.state === 'dispatched' && node.tries === reply.try;
  if (!task || !isCurrent) {
    const known = await subtaskTexts.first(tx, { taskId: reply.taskId, id: reply.subtaskId });
    return archive(tx, reply, known ? 'late' : 'orphan');
  }
  await postReply(tx, task, reply);
  const event = { ...reply, kind: 'reply', id: node.id } as const;
  const why = reply.error ?? 'it failed';
  const whyOf = new Map([[node.id, why]]);
  const isUnsettled = reply.leavesWork === true;
  await moveOn(tx, { task, nodes, event, whyOf, error: `${node.id}: ${why}`, isUnsettled }, effects);
  effects.taskPoints.push('reply-recorded');
  return 'recorded';
}

async function postReply(tx: Tx, task: Task, { status, body, error, from, ...of }: SubtaskReply) {
  const id = messageIdOf(of, 'reply');
  const text = body === '' ? (error ?? '') : body;
  const mail = { id, type: 'reply', from, to: task.agentId, status, body: text, state: 'handled' } as const;
  await postMessage(tx, { ...mail, taskId: task.id, subtaskId: of.subtaskId });
  await markHandled(tx, messageIdOf(of, 'task'));
}

async function archive<Reason extends 'late' | 'orphan'>(
  tx: Tx,
  { taskId, subtaskId, try: tries, status, body, error = '', from }: SubtaskReply,
  reason: Reason,
): Promise<Reason> {
  const to = (await findRow(tx, 'tasks', taskId, ['agentId']))?.agentId ?? '';
  const mail = { type: 'reply', taskId, subtaskId, from, to, status, state: 'archived', reason } as const;
  const text = body === '' ? error : body;
  // The same one again isn't stored again.
  const same = createHash('sha256')
    .update(JSON.stringify([mail, tries, text]))
    .digest('base64url');
  await postMessage(tx, { ...mail, id: `${taskId}/${subtaskId}/${tries}/${same}`, body: text });
  return reason;
}

/** A graph, what has happened to it, and why. */
type Move = {
  readonly task: Task;
  readonly nodes: readonly TaskNode[];
  readonly event: GraphEvent;
  /** Why single nodes fail; the others fail or are skipped because of `error`. */
  readonly whyOf?: ReadonlyMap<string, string>;
  /** Why the task fails, if it does. */
  readonly error: string;
  /** Something is left for `settleTask` in any case. */
  readonly isUnsettled?: boolean;
};

/** Does what the engine says, in its order. Dispatches beyond the limit are left to `settleTask`. */
export async function moveOn(tx: StepTx, move: Move, effects: Effects): Promise<void> {
  const { task, event, whyOf, error } = move;
  const nodes = new Map(move.nodes.map((node) => [node.id, node]));
  let dispatched = 0;
  let isUnsettled = move.isUnsettled === true;
  const actions = advance(move.nodes, event);
  if (actions.length === 0 && !isUnsettled) return;
  for (const action of actions) {
    if (action.kind === 'finish') {
      if (action.status !== 'stopped')
        await aggregate(tx, { task, error: action.status === 'failed' ? error : null }, effects);
      continue;
    }
    const node = nodes.get(action.id);
    if (!node) continue;
    if (action.kind === 'reopen') await reopenSubtask(tx, task.id, node.id);
    else if (action.kind === 'end') {
      const ofTask = event.kind === 'stop' ? error : `stopped: ${error}`;
      const why = action.state === 'done' ? null : (whyOf?.get(node.id) ?? ofTask);
      await endSubtask(tx, { taskId: task.id, id: node.id, state: action.state, error: why });
      if (action.stops !== true) continue;
      await markHandled(tx, messageIdOf({ taskId: task.id, subtaskId: node.id, try: node.tries }, 'task'));
      isUnsettled = true;
    } else if (dispatched < dispatchedAtOnce) {
      dispatched += 1;
      await dispatch(tx, { task, node, try: action.try }, effects);
    } else isUnsettled = true;
  }
  await touchTask(tx, task.id, isUnsettled);
  effects.tasks.push({ id: task.id, laneKey: task.laneKey, isUnsettled });
}

type NodeDispatch = {
  readonly task: Task;
  readonly node: TaskNode;
  readonly try: number;
};

/**
 * Gives a subtask to its peer, or to the coordinator itself. That it is dispatched, and the first item of its worker, are
 * one commit.
 */
async function dispatch(tx: StepTx, to: NodeDispatch, effects: Effects): Promise<void> {
  const { task, node } = to;
  const of = { taskId: task.id, subtaskId: node.id, try: to.try };
  const { dependsOn, ...texts } = await subtaskTexts.one(tx, { taskId: task.id, id: node.id });
  const upstream = await readContributions(tx, task.id, json.strings(dependsOn));
  const from = task.agentId;
  const body = subtaskPrompt({ taskId: task.id, id: node.id, try: to.try, from, ...texts, upstream });
  const isSelf = node.agentId === coordinatorItself;
  const work = { task, node, of, instructions: texts.instructions, body };
  const childId = isSelf ? await enqueueOwn(tx, work, effects) : await startPeer(tx, work, effects);
  await markDispatched(tx, of, childId);
  const mail = {
    type: 'task',
    from,
    to: isSelf ? from : node.agentId,
    status: 'open',
    state: 'new',
  } as const;
  await postMessage(tx, { ...mail, id: messageIdOf(of, 'task'), taskId: task.id, subtaskId: node.id, body });
  effects.taskPoints.push('task-dispatched');
}

const subtaskTexts = prepared((db, of: QueryParams<{ taskId: string; id: string }>) =>
  db
    .selectFrom('subtasks')
    .select(['instructions', 'expected', 'dependsOn'])
    .where('taskId', '=', of.taskId)
    .where('id', '=', of.id),
);

type Work = {
  readonly task: Task;
  readonly node: TaskNode;
  readonly of: Dispatch;
  readonly instructions: string;
  /** The message that its worker reads. */
  readonly body: string;
};

/** Makes the peer: a sub-agent whose end is the reply. Its id is the dispatch's, so a repeat can't make another. */
async function startPeer(tx: StepTx, work: Work, effects: Effects): Promise<string> {
  const { task, node, of, instructions, body } = work;
  const id = peerIdOf(of);
  const { deadlineAt } = await treeOfTask.one(tx, { treeId: task.treeId });
  // `delegate` stored the role together with the graph.
  const role = parseJson(task.role ?? '') as ChildRole;
  // The codec made the key.
  const parent = task.laneKey as SessionKey;
  const lane = childLane({ id, agent: node.agentId, depth: role.depth, parent });
  const child = await insertChild(tx, {
    ...{ id, treeId: task.treeId, depth: role.depth, agentId: node.agentId },
    ...{ task: instructions, mode: 'task', label: node.id, timeoutMs: node.timeoutMs },
    ...{ parentSessionId: task.sessionId, parentLaneKey: task.laneKey },
    ...{ parentRunId: task.runId, parentCallId: task.callId ?? '' },
    ...{ laneKey: lane.key, laneClass: lane.class, route: task.route, authority: task.authority, deadlineAt },
  });
  await openSession(tx, { child, lane, role, context: 'isolated', prompt: body }, effects);
  return id;
}

const treeOfTask = prepared((db, of: QueryParams<{ treeId: string }>) =>
  db.selectFrom('trees').select('deadlineAt').where('id', '=', of.treeId),
);

/** Returns the id of the peer that a dispatch makes, and of its session. */
function peerIdOf({ taskId, subtaskId, try: tries }: Dispatch): string {
  return base32Of(
    createHash('sha256')
      .update(JSON.stringify([taskId, subtaskId, tries]))
      .digest(),
  );
}

/** Puts the coordinator's own subtask into its lane. Its answer is the result, and nobody else sees it. */
async function enqueueOwn(tx: StepTx, { task, node, of, body }: Work, effects: Effects): Promise<null> {
  const override = node.timeoutMs === null ? {} : { override: { timeoutMs: node.timeoutMs } };
  const content = { ...innerContent(tx, excerptOf(body), body), ...override };
  const sourceKey = subtaskItemOf(of);
  await enqueueItem(
    tx,
    { key: task.laneKey },
    ownItem(task, { sourceKey, target: 'record', content }),
    effects,
  );
  return null;
}

/** Gives the coordinator its turn to write the answer; to nobody if its session is gone. */
async function aggregate(
  tx: StepTx,
  { task, error }: { readonly task: Task; readonly error: string | null },
  effects: Effects,
): Promise<void> {
  const lane = await lockLane(tx, task.laneKey);
  if (lane?.sessionId !== task.sessionId)
    return endTask(tx, task.id, { result: null, error: error ?? 'its session has ended', told: 'none' });
  const begun = await beginAggregating(tx, task, error);
  const { title } = task;
  const results = await readContributions(tx, task.id);
  const content = innerContent(tx, title, synthesisPrompt({ id: task.id, title, error, results }));
  const sourceKey = answerItemOf(begun);
  const target = json.target(task.route);
  await enqueueItem(tx, { key: task.laneKey }, ownItem(task, { sourceKey, target, content }), effects);
  effects.taskPoints.push('aggregating');
}

function ownItem({ authority }: Task, item: Pick<InnerItem, 'sourceKey' | 'target' | 'content'>): InnerItem {
  // The store wrote the authority when the task was delegated.
  return { id: newRowId(), source: 'task', reach: 'alone', authority: authority as Authority, ...item };
}

/** Reads what has come of these subtasks, in the order of the graph; without `ids`, of all. */
async function readContributions(
  tx: Tx,
  taskId: string,
  ids?: readonly string[],
): Promise<readonly Contribution[]> {
  if (ids?.length === 0) return [];
  const rows = await (ids === undefined
    ? results.all(tx, { taskId })
    : resultsOf.all(tx, { taskId, ids: JSON.stringify(ids) }));
  return rows.map(({ result, ...row }) => ({ ...row, result: result ?? '' }));
}

const results = prepared((db, of: QueryParams<{ taskId: string }>) => selectResults(db, of.taskId));

const resultsOf = prepared((db, of: QueryParams<{ taskId: string; ids: string }>, dialect) =>
  selectResults(db, of.taskId).where('subtasks.id', ...oneOf(of.ids, dialect)),
);

/** Selects the replies of the current tries. */
function selectResults(db: Tx['db'], taskId: QueryParams<{ taskId: string }>['taskId']) {
  return db
    .selectFrom('subtasks')
    .leftJoin('taskMessages', (join) =>
      join.on(
        'taskMessages.id',
        '=',
        sql<string>`subtasks."taskId" || '/' || subtasks.id || '/' || subtasks.tries || '/reply'`,
      ),
    )
    .select(['subtasks.id', 'subtasks.agentId as agent', 'subtasks.state', 'subtasks.error'])
    .select('taskMessages.body as result')
    .where('subtasks.taskId', '=', taskId)
    .orderBy('subtasks.ordinal');
}

/**
 * Ends the open tasks that these sessions coordinate, of which nobody wants anything any more; with `runIds`, only those
 * that these runs have delegated. The caller stops the peers.
 */
export async function stopTasks(
  tx: StepTx,
  {
    reason,
    ...of
  }: { readonly sessionIds: readonly string[]; readonly runIds?: readonly string[] | undefined } & {
    readonly reason: string;
  },
  effects: Effects,
): Promise<void> {
  for (const task of await readOpenTasks(tx, of)) {
    // One that the run was sent as a message and works on alone ends with that run, for the run's own reason.
    const isDelegated = of.runIds === undefined || task.callId !== null;
    if (isDelegated) await stopTask(tx, task, reason, effects);
  }
}

/**
 * Ends the task: subtasks at work have failed, the others are skipped, and nobody is told but the program that sent it.
 * Work on them is left to `settleTask`, but none of what waits in the coordinator's lane begins any more.
 */
export async function stopTask(tx: StepTx, task: Task, error: string, effects: Effects): Promise<void> {
  const nodes = await readNodes(tx, task.id);
  await cancelWaitingItems(tx, await readOwnItems(tx, task));
  await moveOn(tx, { task, nodes, event: { kind: 'stop' }, error, isUnsettled: true }, effects);
  await endTask(tx, task.id, { result: null, error, told: task.caller === null ? 'none' : 'caller' });
}

/** An item of a task: a subtask of the coordinator's own, its turn for the answer, or the message that is the task. */
type TaskItem =
  | { readonly kind: 'subtask'; readonly taskId: string; readonly subtaskId: string; readonly try: number }
  | { readonly kind: 'answer'; readonly taskId: string; readonly round: number }
  | { readonly kind: 'message'; readonly taskId: string };

function parseTaskItem(sourceKey: string): TaskItem | undefined {
  const [, taskId, name, count] = /^task:([^:]+):([^:]*)(?::(\d+))?$/.exec(sourceKey) ?? [];
  if (taskId === undefined || name === undefined) return undefined;
  if (count === undefined) return { kind: 'message', taskId };
  if (name === '') return { kind: 'answer', taskId, round: Number(count) };
  return { kind: 'subtask', taskId, subtaskId: name, try: Number(count) };
}

/** Says whether a run with this item works on the coordinator's own subtask. */
export function isOwnSubtask(taskItem: string | null): boolean {
  return taskItem !== null && parseTaskItem(taskItem)?.kind === 'subtask';
}

type TaskRun = {
  readonly runId: string;
  /** Source key of the item that it works on. */
  readonly taskItem: string;
  readonly endReason: string;
};

/**
 * Handles the end of a run that worked on an item of a task: its answer is the result of the coordinator's own subtask,
 * or ends the task. A run that a newer message has interrupted comes again behind that. The caller holds the locks of
 * `lockLineage`.
 */
export async function endRunOfTask(
  tx: StepTx,
  { runId, taskItem, endReason }: TaskRun,
  effects: Effects,
): Promise<void> {
  const item = parseTaskItem(taskItem);
  const task = item && (await readTask(tx, item.taskId));
  if (!item || !task || task.endedAt !== null) return;
  if (endReason === 'interrupt' && item.kind !== 'message') return repeatOwn(tx, { task, item }, effects);
  const isDone = endReason === 'natural';
  const result = await readRunText(tx, runId);
  const failure = isDone ? null : `its run ended with ${endReason}`;
  if (item.kind === 'subtask') {
    const status = isDone ? 'done' : 'failed';
    const isFinal = statusOfEnd(endReason) === 'stopped';
    const reply = { ...item, status, body: result, from: task.agentId, isFinal } as const;
    await recordReply(tx, { ...reply, ...(failure !== null && { error: failure }) }, effects);
    return;
  }
  const isIts =
    item.kind === 'answer'
      ? isCurrentAnswer(task, item)
      : task.mode === 'direct' || task.state === 'planning';
  if (!isIts) return;
  const told = toldOf(task);
  await endTask(tx, task.id, { result, error: task.error ?? failure, told });
  effects.tasks.push({ id: task.id, laneKey: task.laneKey, isUnsettled: false });
}

function isCurrentAnswer({ state, rounds }: Task, { round }: { readonly round: number }): boolean {
  return state === 'aggregating' && rounds === round;
}

type OwnWork = { readonly task: Task; readonly item: Exclude<TaskItem, { readonly kind: 'message' }> };

/** Gives the coordinator its own subtask, or its turn for the answer, once more. */
async function repeatOwn(tx: StepTx, { task, item }: OwnWork, effects: Effects): Promise<void> {
  if (item.kind === 'answer') {
    if (!isCurrentAnswer(task, item)) return;
    await aggregate(tx, { task, error: task.error }, effects);
  } else {
    const node = (await readOpenNodes(tx, task.id)).find(({ id }) => id === item.subtaskId);
    if (task.state !== 'executing' || node?.state !== 'dispatched' || node.tries !== item.try) return;
    await markHandled(tx, messageIdOf(item, 'task'));
    await dispatch(tx, { task, node, try: item.try + 1 }, effects);
  }
  await touchTask(tx, task.id, false);
  effects.tasks.push({ id: task.id, laneKey: task.laneKey, isUnsettled: false });
}

/** Says who learns of the task's end: the one that gave it. */
export function toldOf({ caller, laneKey }: Task): TaskTold {
  if (caller !== null) return 'caller';
  return isChildLane(laneKey) ? 'parent' : 'lane';
}
