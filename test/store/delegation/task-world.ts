import type { Store, StoreQuery, Tx } from '../../../src/store/base/command.ts';
import { json } from '../../../src/store/base/json.ts';

/** Everything that is stored about a conversation's tasks. */
export type TaskWorld = Awaited<ReturnType<typeof readWorld>>;

type Place = { readonly sessionId: string; readonly taskId: string };

export function readTaskWorld(store: Store, place: Place): Promise<TaskWorld> {
  return store.read(taskWorld, place);
}

const taskWorld: StoreQuery<Place, TaskWorld> = {
  query: 'taskWorld',
  run: (tx, place) => readWorld(tx, place),
};

async function readWorld(tx: Tx, { sessionId, taskId }: Place) {
  const children = await readBelow(tx, sessionId);
  const sessionIds = [sessionId, ...children.map(({ id }) => id)];
  const tasks = await tx.db
    .selectFrom('tasks')
    .selectAll()
    .where('sessionId', 'in', sessionIds)
    .orderBy('createdAt')
    .execute();
  const task = tasks.find(({ id }) => id === taskId);
  if (!task) throw new Error(`there is no task ${taskId}`);
  const ids = tasks.map(({ id }) => id);
  const rows = await tx.db
    .selectFrom('subtasks')
    .selectAll()
    .where('taskId', 'in', ids)
    .orderBy('ordinal')
    .execute();
  const allNodes = rows.map((row) => ({ ...row, dependsOn: json.strings(row.dependsOn) }));
  const messages = await tx.db
    .selectFrom('taskMessages')
    .select(['id', 'taskId', 'subtaskId', 'type', 'state', 'status'])
    .where('taskId', 'in', ids)
    .orderBy('createdAt')
    .orderBy('id')
    .execute();
  const laneKeys = [task.laneKey, ...children.map(({ laneKey }) => laneKey)];
  const items = await tx.db
    .selectFrom('inbox')
    .select(['state', 'sourceKey'])
    .where('laneKey', 'in', laneKeys)
    .execute();
  const lanes = await tx.db
    .selectFrom('lanes')
    .select(['key', 'runId'])
    .where('key', 'in', laneKeys)
    .execute();
  const runs = await tx.db
    .selectFrom('runs')
    .select(['id', 'taskItem'])
    .where('sessionId', 'in', sessionIds)
    .where('endedAt', 'is', null)
    .execute();
  const trees = await tx.db.selectFrom('trees').select('live').where('id', '=', task.treeId).execute();
  const isAtRest =
    tasks.every(({ endedAt, isUnsettled }) => endedAt !== null && isUnsettled === 0) &&
    children.every(({ state }) => state === 'done') &&
    lanes.every(({ runId }) => runId === null) &&
    items.every(({ state }) => state === 'ended');
  const nodes = allNodes.filter((node) => node.taskId === taskId);
  return { task, tasks, nodes, allNodes, children, messages, items, runs, trees, isAtRest };
}

async function readBelow(tx: Tx, sessionId: string) {
  const found = [];
  for (let above: readonly string[] = [sessionId]; above.length > 0; ) {
    const level = await tx.db
      .selectFrom('children')
      .select(['id', 'laneKey', 'state', 'status', 'mode', 'told', 'stopAt'])
      .where('parentSessionId', 'in', above)
      .execute();
    above = level.map(({ id }) => id);
    found.push(...level);
  }
  return found;
}
