import { type RawBuilder, sql } from 'kysely';
import type { SubtaskView, TaskMessage, TaskRecord, TaskView } from '#contracts/task.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { excerptOf } from '../base/one-line.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { readChild, readChildUsage } from '../children/child.ts';
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

/** `laneKeys`: those of these conversations; `sessionId`: those of this session; each with everything below. */
type TasksOf = { readonly laneKeys?: readonly string[]; readonly sessionId?: string; readonly limit: number };

/** Reads tasks, open ones first, then the newest; without lanes and session, all. */
export const readTasks: StoreQuery<TasksOf, readonly TaskView[]> = {
  query: 'readTasks',
  run: async (tx, { laneKeys, sessionId, limit }) => {
    const rows = await tx.db
      .selectFrom('tasks')
      .selectAll()
      .$if(laneKeys !== undefined, (query) => query.where('sessionId', 'in', sessionsUnder(laneKeys ?? [])))
      .$if(sessionId !== undefined, (query) =>
        query.where('sessionId', 'in', sessionsBelow(sql`select cast(${sessionId} as text)`)),
      )
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

async function viewOf(tx: Tx, task: Task): Promise<TaskView> {
  const { id, title, agentId: agent, laneKey, mode, state, revision, createdAt } = task;
  const { parentTaskId, parentSubtaskId, error, endedAt } = task;
  return {
    ...{ id, title, agent, laneKey, mode, state, revision, createdAt },
    ...(parentTaskId !== null && { parent: { taskId: parentTaskId, subtaskId: parentSubtaskId ?? '' } }),
    ...(error !== null && { error }),
    ...(endedAt !== null && { endedAt }),
    subtasks: await readSubtasks(tx, id),
  };
}

async function readSubtasks(tx: Tx, taskId: string): Promise<readonly SubtaskView[]> {
  const nodes = await readNodes(tx, taskId);
  if (nodes.length === 0) return [];
  const names = new Map(
    (await namesOf.all(tx, { taskId })).map(({ id, instructions }) => [id, excerptOf(instructions)]),
  );
  const below = new Map(
    (await tasksBelow.all(tx, { taskId })).map(({ id, parentSubtaskId }) => [parentSubtaskId, id]),
  );
  const views: SubtaskView[] = [];
  for (const node of nodes)
    views.push({
      ...subtaskOf(node),
      name: names.get(node.id) ?? '',
      ...(below.has(node.id) && { taskId: below.get(node.id) as string }),
      ...(await usageOf(tx, node)),
    });
  return views;
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

/** Reads what the current peer has used; its row doesn't say so until it has ended. */
async function usageOf(tx: Tx, { childId }: TaskNode): Promise<Pick<SubtaskView, 'tokens' | 'cost'>> {
  const child = childId === null ? undefined : await readChild(tx, childId);
  if (!child) return { tokens: 0, cost: 0 };
  const usage = child.state === 'done' ? child : await readChildUsage(tx, child.laneKey);
  return { tokens: usage.promptTokens + usage.completionTokens, cost: usage.cost };
}

const namesOf = prepared((db, of: QueryParams<{ taskId: string }>) =>
  db.selectFrom('subtasks').select(['id', 'instructions']).where('taskId', '=', of.taskId),
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
