/**
 * Writes the states of tasks, subtasks and the messages between agents; no other file does. The callers hold the lock
 * of the coordinator's lane, which serializes everything that changes its tasks.
 */
import type { Selectable } from 'kysely';
import type { FailurePolicy, TaskMessage, TaskMode, TaskTold } from '#contracts/task.ts';
import type { Tx } from '../base/command.ts';
import { isOpenTask } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, insertNewRow, insertRow, plus } from '../base/row-access.ts';
import type { SubtasksTable, TasksTable } from '../base/run-tables.ts';
import type { GraphNode } from './graph.ts';

/** A task's row. */
export type Task = Selectable<TasksTable>;

/** Reads a task; undefined when there is none. */
export function readTask(tx: Tx, id: string): Promise<Task | undefined> {
  return taskById.first(tx, { id });
}

const taskById = prepared((db, of: QueryParams<{ id: string }>) =>
  db.selectFrom('tasks').selectAll().where('id', '=', of.id),
);

/** Returns the beginning of the source keys of the items that a task puts into its coordinator's lane. */
export function taskItemsOf(taskId: string): string {
  return `task:${taskId}:`;
}

/** Returns the source key of the coordinator's own subtask. */
export function subtaskItemOf({ taskId, subtaskId, try: tries }: Dispatch): string {
  return `${taskItemsOf(taskId)}${subtaskId}:${tries}`;
}

/** Returns the source key of the coordinator's turn for the answer. */
export function answerItemOf({ id, rounds }: Pick<Task, 'id' | 'rounds'>): string {
  return `${taskItemsOf(id)}:${rounds}`;
}

/** Returns the task that an item with this source key belongs to. */
export function taskIn(sourceKey: string | null): string | undefined {
  return /^task:([^:]+):/.exec(sourceKey ?? '')?.[1];
}

/** Reads the open tasks that these sessions coordinate; with `runIds`, only those that these runs have delegated. */
export function readOpenTasks(
  tx: Tx,
  of: { readonly sessionIds: readonly string[]; readonly runIds?: readonly string[] | undefined },
): Promise<readonly Task[]> {
  const query = tx.db
    .selectFrom('tasks')
    .selectAll()
    .where('sessionId', 'in', of.sessionIds)
    .where(isOpenTask())
    .orderBy('id');
  return (of.runIds === undefined ? query : query.where('runId', 'in', of.runIds)).execute();
}

type Fresh = 'error' | 'result' | 'told' | 'rounds' | 'revision' | 'isUnshown' | 'createdAt' | 'endedAt';

/** Stores a new task; false if one with that id exists. */
export function insertTask(tx: Tx, task: Omit<Task, Fresh>): Promise<boolean> {
  const fresh = { error: null, result: null, told: null, rounds: 0, revision: 1, isUnshown: 1 };
  return insertNewRow(tx, 'tasks', { ...task, ...fresh, createdAt: tx.now, endedAt: null });
}

/** A subtask that a coordinator asks for. */
export type NewSubtask = {
  readonly id: string;
  /** Id of an agent, or `self`. */
  readonly agent: string;
  readonly instructions: string;
  readonly expected?: string;
  readonly dependsOn: readonly string[];
  readonly onFailure: FailurePolicy;
  readonly timeoutMs?: number;
};

/** Stores the nodes of a graph. */
export async function insertSubtasks(tx: Tx, taskId: string, subtasks: readonly NewSubtask[]): Promise<void> {
  for (const [ordinal, { id, agent, instructions, onFailure, ...rest }] of subtasks.entries())
    await insertRow(tx, 'subtasks', {
      ...{ taskId, id, ordinal, agentId: agent, instructions, onFailure },
      ...{ expected: rest.expected ?? null, timeoutMs: rest.timeoutMs ?? null },
      dependsOn: JSON.stringify(rest.dependsOn),
      ...{ state: 'pending' as const, tries: 0, childId: null, error: null, startedAt: null, endedAt: null },
    });
}

/** Reads the task that the session began last; undefined when it has none. */
export function readLatestTask(tx: Tx, sessionId: string): Promise<Task | undefined> {
  return latestTask.first(tx, { sessionId });
}

const latestTask = prepared((db, of: QueryParams<{ sessionId: string }>) =>
  db
    .selectFrom('tasks')
    .selectAll()
    .where('sessionId', '=', of.sessionId)
    .orderBy('createdAt', 'desc')
    .orderBy('id')
    .limit(1),
);

/** A node with what decides about it, without its texts. */
export type TaskNode = GraphNode &
  Pick<Selectable<SubtasksTable>, 'agentId' | 'childId' | 'timeoutMs' | 'error' | 'startedAt' | 'endedAt'>;

/** Reads the graph of a task, in the order in which its nodes were given. */
export async function readNodes(tx: Tx, taskId: string): Promise<readonly TaskNode[]> {
  const rows = await nodesOf.all(tx, { taskId });
  return rows.map((row) => ({ ...row, dependsOn: json.strings(row.dependsOn) }));
}

const nodesOf = prepared((db, of: QueryParams<{ taskId: string }>) =>
  db
    .selectFrom('subtasks')
    .select(['id', 'dependsOn', 'onFailure', 'state', 'tries'])
    .select(['agentId', 'childId', 'timeoutMs', 'error', 'startedAt', 'endedAt'])
    .where('taskId', '=', of.taskId)
    .orderBy('ordinal'),
);

/**
 * Reads the nodes that haven't ended, which is all that a reply needs to know: in a graph that is at work, every other
 * one is satisfied. Their dependencies are those that haven't ended either.
 */
export async function readOpenNodes(tx: Tx, taskId: string): Promise<readonly TaskNode[]> {
  const rows = await openNodesOf.all(tx, { taskId });
  const open = new Set(rows.map(({ id }) => id));
  return rows.map((row) => ({ ...row, dependsOn: json.strings(row.dependsOn).filter((id) => open.has(id)) }));
}

const openNodesOf = prepared((db, of: QueryParams<{ taskId: string }>) =>
  db
    .selectFrom('subtasks')
    .select(['id', 'dependsOn', 'onFailure', 'state', 'tries'])
    .select(['agentId', 'childId', 'timeoutMs', 'error', 'startedAt', 'endedAt'])
    .where('taskId', '=', of.taskId)
    .where('state', 'in', ['pending', 'dispatched'])
    .orderBy('ordinal'),
);

/** Which dispatch of which subtask. */
export type Dispatch = { readonly taskId: string; readonly subtaskId: string; readonly try: number };

/** Finds the subtask that the peer works on, or worked on. */
export async function readDispatchOf(tx: Tx, childId: string): Promise<Dispatch | undefined> {
  const row = await dispatchOf.first(tx, { childId });
  return row && { taskId: row.taskId, subtaskId: row.id, try: row.tries };
}

const dispatchOf = prepared((db, of: QueryParams<{ childId: string }>) =>
  db.selectFrom('subtasks').select(['taskId', 'id', 'tries']).where('childId', '=', of.childId),
);

type NodeChange = Partial<
  Pick<SubtasksTable, 'state' | 'tries' | 'childId' | 'error' | 'startedAt' | 'endedAt'>
>;

async function changeNode(tx: Tx, { taskId, id }: { taskId: string; id: string }, to: NodeChange) {
  await tx.db.updateTable('subtasks').set(to).where('taskId', '=', taskId).where('id', '=', id).execute();
}

/** Marks the subtask as dispatched. `childId`: its peer; null for the coordinator itself. */
export async function markDispatched(
  tx: Tx,
  { taskId, subtaskId: id, try: tries }: Dispatch,
  childId: string | null,
): Promise<void> {
  const times = { startedAt: tx.now, endedAt: null, error: null };
  await changeNode(tx, { taskId, id }, { state: 'dispatched', tries, childId, ...times });
}

export type NodeEnd = {
  readonly taskId: string;
  readonly id: string;
  readonly state: 'done' | 'failed' | 'skipped';
  readonly error: string | null;
};

/** Ends the subtask. */
export async function endSubtask(tx: Tx, { taskId, id, state, error }: NodeEnd): Promise<void> {
  await changeNode(tx, { taskId, id }, { state, error, endedAt: tx.now });
}

/** Lets a subtask that has ended begin again. Its tries go on, so that no two dispatches share a key. */
export async function reopenSubtask(tx: Tx, taskId: string, id: string): Promise<void> {
  await changeNode(tx, { taskId, id }, { state: 'pending', error: null, startedAt: null, endedAt: null });
}

/** Each change makes the readers of the task read it again. */
const changed = { revision: plus(1), isUnshown: 1 };

/** Raises the revision. `isUnsettled`: something is left for `settleTask`; what earlier steps have left stays so. */
export async function touchTask(tx: Tx, id: string, isUnsettled: boolean): Promise<void> {
  await changeRow(tx, 'tasks', id, { ...(isUnsettled && { isUnsettled: 1 }), ...changed });
}

/** Records that a step has left something for `settleTask`, or that this has been done. */
export async function markUnsettled(tx: Tx, id: string, isUnsettled = true): Promise<void> {
  await changeRow(tx, 'tasks', id, { isUnsettled: isUnsettled ? 1 : 0 });
}

/** Returns the task on whose item a run begins. The first run of one that came as a message starts it. */
export async function beginTask(tx: Tx, id: string): Promise<Task | undefined> {
  const task = await readTask(tx, id);
  if (task?.state !== 'pending') return task;
  const state = task.mode === 'direct' ? 'in-progress' : 'planning';
  await changeRow(tx, 'tasks', id, { state, ...changed });
  return task;
}

/** Turns a task that came as a message into one with a graph. */
export async function beginCoordinating(
  tx: Tx,
  id: string,
  graph: Pick<Task, 'runId' | 'callId' | 'role'>,
): Promise<void> {
  const mode: TaskMode = 'coordinating';
  await changeRow(tx, 'tasks', id, { ...graph, mode, state: 'executing', ...changed });
}

/** Nothing of the graph is open any more: the coordinator has one turn. `error`: why the task fails. */
export async function beginAggregating(tx: Tx, task: Task, error: string | null): Promise<Task> {
  const rounds = task.rounds + 1;
  await changeRow(tx, 'tasks', task.id, { state: 'aggregating', error, rounds, ...changed });
  return { ...task, state: 'aggregating', error, rounds };
}

export type TaskEnd = {
  readonly result: string | null;
  /** Why it failed; null if it didn't. */
  readonly error: string | null;
  readonly told: TaskTold;
};

/** Ends the task. */
export async function endTask(tx: Tx, id: string, { result, error, told }: TaskEnd): Promise<void> {
  const state = error === null ? 'done' : 'failed';
  await changeRow(tx, 'tasks', id, { state, result, error, told, endedAt: tx.now, ...changed });
}

/** Lets a failed task go on. */
export async function reopenTask(tx: Tx, id: string): Promise<void> {
  const open = { error: null, result: null, told: null, endedAt: null } as const;
  await changeRow(tx, 'tasks', id, { ...open, state: 'executing', ...changed });
}

/** Returns the id of the message that dispatches the subtask, or replies to that dispatch. */
export function messageIdOf({ taskId, subtaskId, try: tries }: Dispatch, type: TaskMessage['type']): string {
  return `${taskId}/${subtaskId}/${tries}/${type}`;
}

/** Stores a message; one with that id stays as it is. */
export async function postMessage(
  tx: Tx,
  {
    from: sender,
    to: recipient,
    reason = null,
    ...message
  }: Omit<TaskMessage, 'createdAt' | 'reason'> & {
    readonly reason?: TaskMessage['reason'] | null;
  },
): Promise<void> {
  await insertNewRow(tx, 'taskMessages', { ...message, sender, recipient, reason, createdAt: tx.now });
}

/** Records that the message has been dealt with: its subtask has ended. */
export async function markHandled(tx: Tx, id: string): Promise<void> {
  await tx.db.updateTable('taskMessages').set({ state: 'handled' }).where('id', '=', id).execute();
}
