import { type RawBuilder, sql } from 'kysely';
import type { SubtaskView, TaskActivity, TaskMessage, TaskRecord, TaskView } from '#contracts/task.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { isOpenTask } from '../base/index-predicates.ts';
import { excerptOf } from '../base/one-line.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { oneOf } from '../base/row-access.ts';
import { idsBeginning, readChildUsage } from '../children/child.ts';
import { messageIdOf, readNodes, readTask, type Task, type TaskNode } from '../tasks/task.ts';

/** Reads a task as people see it; undefined when there is none. */
export const findTask: StoreQuery<{ readonly taskId: string }, TaskView | undefined> = {
  query: 'findTask',
  run: async (tx, { taskId }) => {
    const task = await readTask(tx, taskId);
    return task && viewOf(tx, task);
  },
};

/** Reads a task with its texts. */
export const findTaskRecord: StoreQuery<{ readonly taskId: string }, TaskRecord | undefined> = {
  query: 'findTaskRecord',
  run: async (tx, { taskId }) => {
    const task = await readTask(tx, taskId);
    if (!task) return undefined;
    const { instructions, authority, result } = task;
    const texts = await readTexts(tx, taskId);
    const record = { ...(await viewOf(tx, task)), instructions, authority, texts };
    return result === null ? record : { ...record, result };
  },
};

/** Which task an id, or the beginning of one, names. */
export type NamedTask =
  | { readonly kind: 'found'; readonly taskId: string }
  | { readonly kind: 'none' | 'several' };

/** Finds the task whose id begins with the text. `laneKeys`: only among those of these conversations. */
export const findTaskNamed: StoreQuery<
  { readonly id: string; readonly laneKeys?: readonly string[] },
  NamedTask
> = {
  query: 'findTaskNamed',
  run: async (tx, { id, laneKeys }) => {
    const ids = idsBeginning(id);
    if (ids === undefined) return { kind: 'none' };
    const rows = await tx.db
      .selectFrom('tasks')
      .select('id')
      .where('id', '>=', ids.first)
      .where('id', '<=', ids.last)
      .$if(laneKeys !== undefined, (query) => query.where('sessionId', 'in', sessionsUnder(laneKeys ?? [])))
      .limit(2)
      .execute();
    const [found, ...others] = rows;
    if (found === undefined) return { kind: 'none' };
    return others.length > 0 ? { kind: 'several' } : { kind: 'found', taskId: found.id };
  },
};

/**
 * `laneKeys`: those of these conversations; `sessionId`: those of this session; each with everything below. `isTop`: not
 * those that are part of another task.
 */
type TasksOf = {
  readonly laneKeys?: readonly string[];
  readonly sessionId?: string;
  readonly isTop?: true;
  readonly limit: number;
};

/** Reads tasks, open ones first, then the newest; without lanes and session, all. */
export const readTasks: StoreQuery<TasksOf, readonly TaskView[]> = {
  query: 'readTasks',
  run: async (tx, { laneKeys, sessionId, isTop, limit }) => {
    const rows = await tx.db
      .selectFrom('tasks')
      .selectAll()
      .$if(laneKeys !== undefined, (query) => query.where('sessionId', 'in', sessionsUnder(laneKeys ?? [])))
      .$if(sessionId !== undefined, (query) =>
        query.where('sessionId', 'in', sessionsBelow(sql`select cast(${sessionId} as text)`)),
      )
      .$if(isTop === true, (query) => query.where('parentTaskId', 'is', null))
      .orderBy((eb) => eb.case().when('endedAt', 'is', null).then(0).else(1).end())
      .orderBy('createdAt', 'desc')
      .orderBy('id')
      .limit(limit)
      .execute();
    const views: TaskView[] = [];
    for (const task of rows) views.push(await viewOf(tx, task));
    return views;
  },
};

function sessionsUnder(laneKeys: readonly string[]) {
  return sessionsBelow(sql`select id from sessions where key in (${sql.join(laneKeys)})`);
}

/** These sessions and those of all sub-agents below them. */
function sessionsBelow(top: RawBuilder<unknown>) {
  return sql<string>`(
    with recursive below(id) as (
      ${top}
      union
      select children.id from children join below on children."parentSessionId" = below.id
    )
    select id from below)`;
}

/** How long a conversation shows a task that has ended, ms. */
const shownMs = 3_600_000;
/** Most tasks that a conversation shows. */
const maxRecent = 10;

/**
 * Reads the tasks that these sessions coordinate: open ones, and those that ended within the last hour; the oldest first.
 * Without tasks this is one query.
 */
export async function readRecentTasks(
  tx: Tx,
  sessionIds: readonly string[],
): Promise<readonly TaskActivity[]> {
  const rows = await recentTasks.all(tx, { sessions: JSON.stringify(sessionIds), since: tx.now - shownMs });
  const shown: TaskActivity[] = [];
  for (const task of rows) {
    const nodes = await readNodes(tx, task.id);
    const isLarge = nodes.length > maxDrawn;
    const subtasks = await readSubtasks(tx, task.id, isLarge ? thoseThatMatter(nodes) : nodes);
    shown.push({ ...headOf(task), ...(isLarge && { counts: countsOf(nodes) }), subtasks });
  }
  return shown.sort((a, b) => a.createdAt - b.createdAt);
}

/** The outermost come first, then the newest: a task that is nested in another is shown within it. */
const recentTasks = prepared((db, of: QueryParams<{ sessions: string; since: number }>, dialect) =>
  db
    .selectFrom('tasks')
    .select(['id', 'title', 'agentId', 'laneKey', 'mode', 'state', 'revision', 'createdAt', 'endedAt'])
    .select(['parentTaskId', 'parentSubtaskId', 'error'])
    .where('sessionId', ...oneOf(of.sessions, dialect))
    .where((eb) => eb.or([isOpenTask(), eb('endedAt', '>=', of.since)]))
    .orderBy((eb) => eb.case().when('endedAt', 'is', null).then(0).else(1).end())
    .orderBy((eb) => eb.case().when('parentTaskId', 'is', null).then(0).else(1).end())
    .orderBy('createdAt', 'desc')
    .orderBy('id')
    .limit(maxRecent),
);

/** Most subtasks of a graph that is drawn. */
const maxDrawn = 300;
/** Most subtasks of a larger graph that are listed. */
const maxListed = 100;
/** Order in which subtasks are listed: first those that somebody may want to look at or stop. */
const urgency = { dispatched: 0, failed: 0, pending: 1, skipped: 2, done: 2 } as const;

function thoseThatMatter(nodes: readonly TaskNode[]): readonly TaskNode[] {
  const open = nodes.filter(({ state }) => urgency[state] < 2);
  const listed = open.toSorted((a, b) => urgency[a.state] - urgency[b.state]).slice(0, maxListed);
  return nodes.filter((node) => listed.includes(node));
}

function countsOf(nodes: readonly TaskNode[]): NonNullable<TaskActivity['counts']> {
  const counts: { [State in TaskNode['state']]?: number } = {};
  for (const { state } of nodes) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}

async function viewOf(tx: Tx, task: Task): Promise<TaskView> {
  return { ...headOf(task), subtasks: await readSubtasks(tx, task.id, await readNodes(tx, task.id)) };
}

type TaskHead = Awaited<ReturnType<typeof recentTasks.all>>[number];

function headOf(task: TaskHead): Omit<TaskView, 'subtasks'> {
  const { id, title, agentId: agent, laneKey, mode, state, revision, createdAt } = task;
  const { parentTaskId, parentSubtaskId, error, endedAt } = task;
  return {
    ...{ id, title, agent, laneKey, mode, state, revision, createdAt },
    ...(parentTaskId !== null && { parent: { taskId: parentTaskId, subtaskId: parentSubtaskId ?? '' } }),
    ...(error !== null && { error }),
    ...(endedAt !== null && { endedAt }),
  };
}

async function readSubtasks(
  tx: Tx,
  taskId: string,
  nodes: readonly TaskNode[],
): Promise<readonly SubtaskView[]> {
  if (nodes.length === 0) return [];
  const names = new Map((await namesOf.all(tx, { taskId })).map(({ id, begin }) => [id, excerptOf(begin)]));
  const below = new Map(
    (await tasksBelow.all(tx, { taskId })).map(({ id, parentSubtaskId }) => [parentSubtaskId, id]),
  );
  const used = await readUsage(tx, taskId);
  return nodes.map((node) => ({
    ...subtaskOf(node),
    name: names.get(node.id) ?? '',
    ...(below.has(node.id) && { taskId: below.get(node.id) as string }),
    ...(used.get(node.id) ?? { tokens: 0, cost: 0 }),
  }));
}

function subtaskOf(node: TaskNode): Omit<SubtaskView, 'name' | 'tokens' | 'cost'> {
  const { id, agentId: agent, state, tries, dependsOn, onFailure, childId, error, startedAt, endedAt } = node;
  return {
    ...{ id, agent, state, tries, dependsOn, onFailure },
    ...(childId !== null && { childId }),
    ...(startedAt !== null && { startedAt }),
    ...(endedAt !== null && { endedAt }),
    ...(error !== null && { error }),
  };
}

type Usage = Pick<SubtaskView, 'tokens' | 'cost'>;

/**
 * Reads what the peers of all tries have used, by subtask. A peer's row doesn't say so until it has ended, and one that
 * hasn't begun used nothing.
 */
async function readUsage(tx: Tx, taskId: string): Promise<ReadonlyMap<string | null, Usage>> {
  const used = new Map<string | null, Usage>();
  for (const peer of await peersOf.all(tx, { taskId })) {
    if (peer.state === 'queued') continue;
    const usage = peer.state === 'done' ? peer : await readChildUsage(tx, peer.laneKey);
    const { tokens, cost } = used.get(peer.label) ?? { tokens: 0, cost: 0 };
    used.set(peer.label, {
      tokens: tokens + usage.promptTokens + usage.completionTokens,
      cost: cost + usage.cost,
    });
  }
  return used;
}

/** A peer's label is the name of its subtask. */
const peersOf = prepared((db, of: QueryParams<{ taskId: string }>) =>
  db
    .selectFrom('tasks')
    .innerJoin('children', (join) =>
      join
        .onRef('children.parentRunId', '=', 'tasks.runId')
        .onRef('children.parentCallId', '=', 'tasks.callId')
        .onRef('children.parentSessionId', '=', 'tasks.sessionId'),
    )
    .select(['children.label', 'children.state', 'children.laneKey'])
    .select(['children.promptTokens', 'children.completionTokens', 'children.cost'])
    .where('tasks.id', '=', of.taskId)
    .where('children.mode', '=', 'task'),
);

/** Only the beginning of the instructions, which may be long. */
const namesOf = prepared((db, of: QueryParams<{ taskId: string }>) =>
  db
    .selectFrom('subtasks')
    .select(['id', sql<string>`substr(instructions, 1, 400)`.as('begin')])
    .where('taskId', '=', of.taskId),
);

const tasksBelow = prepared((db, of: QueryParams<{ taskId: string }>) =>
  db
    .selectFrom('tasks')
    .select(['id', 'parentSubtaskId'])
    .where('parentTaskId', '=', of.taskId)
    .orderBy('createdAt'),
);

async function readTexts(tx: Tx, taskId: string): Promise<TaskRecord['texts']> {
  const rows = await tx.db
    .selectFrom('subtasks')
    .select(['id', 'tries', 'instructions', 'expected'])
    .where('taskId', '=', taskId)
    .execute();
  const bodies = new Map((await readTaskMessages.run(tx, { taskId })).map(({ id, body }) => [id, body]));
  return Object.fromEntries(
    rows.map(({ id, tries, instructions, expected }) => {
      const result = bodies.get(messageIdOf({ taskId, subtaskId: id, try: tries }, 'reply'));
      return [
        id,
        {
          instructions,
          ...(expected !== null && { expected }),
          ...(result !== undefined && { result }),
        },
      ];
    }),
  );
}

/** Reads the messages of a task, oldest first. */
export const readTaskMessages: StoreQuery<{ readonly taskId: string }, readonly TaskMessage[]> = {
  query: 'readTaskMessages',
  run: async (tx, { taskId }) => {
    const rows = await tx.db
      .selectFrom('taskMessages')
      .selectAll()
      .where('taskId', '=', taskId)
      .orderBy('createdAt')
      .orderBy('id')
      .execute();
    return rows.map(({ sender: from, recipient: to, reason, ...message }) => ({
      ...message,
      ...{ from, to, reason: reason ?? undefined },
    }));
  },
};
