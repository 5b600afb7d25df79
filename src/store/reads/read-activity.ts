import type { ChildUsage, ChildView } from '#contracts/child.ts';
import type { QueueMode } from '#contracts/queue-settings.ts';
import type { TimelineActivity } from '#contracts/timeline.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { excerptOf } from '../base/one-line.ts';
import { findRow } from '../base/row-access.ts';
import { readChildUsage, readLiveChildren } from '../children/child.ts';
import { senderRef } from '../items/item-change.ts';
import { readRecentTasks } from './read-tasks.ts';

/** Maximum number of tools listed; a batch may have started more. */
const maxTools = 20;
/** Maximum number of listed sub-agents that the conversation itself spawned. */
const maxChildren = 50;

/**
 * Reads the lane's run, in any process, with its active tools and reason for waiting, the lane's sub-agents, and the tasks
 * that the lane or one of these sub-agents coordinates.
 */
export const readActivity: StoreQuery<{ readonly laneKey: string }, TimelineActivity> = {
  query: 'readActivity',
  run: async (tx, { laneKey }) => {
    const sessions = await readSessions(tx, laneKey);
    const children = await readChildrenBelow(tx, sessions, maxChildren);
    const tasks = await readRecentTasks(tx, [...sessions, ...children.map(({ id }) => id)]);
    const lane = await findRow(tx, 'lanes', laneKey, ['mode']);
    return {
      ...(await readRun(tx, laneKey)),
      ...(lane && { queueMode: lane.mode as QueueMode }),
      ...(children.length > 0 && { children }),
      ...(tasks.length > 0 && { tasks }),
    };
  },
};

async function readRun(tx: Tx, laneKey: string): Promise<Pick<TimelineActivity, 'run'>> {
  const run = await tx.db
    .selectFrom('lanes')
    .innerJoin('runs', 'runs.id', 'lanes.runId')
    .select(['runs.id', 'runs.parkReason', 'runs.state'])
    .where('lanes.key', '=', laneKey)
    .executeTakeFirst();
  if (!run) return {};
  const calls = await tx.db
    .selectFrom('toolCalls')
    .select(['callId', 'name'])
    .where('runId', '=', run.id)
    .where('state', 'in', ['started', 'waiting'])
    .orderBy('messageId')
    .orderBy('ordinal')
    .limit(maxTools)
    .execute();
  const waitsFor = run.state === 'parked' ? { waitsFor: run.parkReason ?? '' } : {};
  const callIds = calls.map(({ callId }) => callId);
  return { run: { runId: run.id, tools: calls.map(({ name }) => name), callIds, ...waitsFor } };
}

/** How many of a lane's sessions are searched; each `/new` creates one. */
const newestSessions = 3;

/**
 * Reads a conversation's sub-agents at every depth, oldest first: the newest `limit` that it spawned, with all their
 * descendants, and every live one, which somebody may want to stop however many came after it. `laneKeys`: its lane,
 * and for a person with linked accounts also the lane that they wrote in before.
 */
export const readConversationChildren: StoreQuery<
  { readonly laneKeys: readonly string[]; readonly limit: number },
  readonly ChildView[]
> = {
  query: 'readConversationChildren',
  run: async (tx, { laneKeys, limit }) => {
    let sessions: readonly string[] = [];
    for (const laneKey of new Set(laneKeys)) sessions = [...sessions, ...(await readSessions(tx, laneKey))];
    return readChildrenBelow(tx, sessions, limit);
  },
};

async function readChildrenBelow(
  tx: Tx,
  sessions: readonly string[],
  limit: number,
): Promise<readonly ChildView[]> {
  const found: Row[] = [];
  for (let above = sessions, isFirst = true; above.length > 0; isFirst = false) {
    const rows = await readBelow(tx, above, isFirst ? limit : maxBelow);
    found.push(...rows);
    above = rows.map(({ id }) => id);
  }
  const known = new Set(found.map(({ id }) => id));
  const views: ChildView[] = [];
  for (const row of found) {
    // A child's row doesn't include its usage until it is done.
    const usage = row.state === 'done' ? row : await readChildUsage(tx, row.laneKey);
    views.push(viewOf(row, usage, known));
  }
  // Children spawned in one batch have the same time. Names are often numbered; ids are random.
  return views.sort((a, b) => a.createdAt - b.createdAt || byName(a.name, b.name) || byName(a.id, b.id));
}

async function readSessions(tx: Tx, laneKey: string): Promise<readonly string[]> {
  const sessions = await tx.db
    .selectFrom('sessions')
    .select('id')
    .where('key', '=', laneKey)
    .orderBy('createdAt', 'desc')
    .limit(newestSessions)
    .execute();
  return sessions.map(({ id }) => id);
}

function byName(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** More nodes per level than a tree may have in its lifetime. */
const maxBelow = 1_000;

type Row = Awaited<ReturnType<typeof readNewest>>[number];

async function readBelow(tx: Tx, sessionIds: readonly string[], limit: number): Promise<readonly Row[]> {
  const live: readonly Row[] = await readLiveChildren(tx, { sessionIds });
  const rows = [...live, ...(await readNewest(tx, sessionIds, limit))];
  return [...new Map(rows.map((row) => [row.id, row])).values()];
}

/** Reads everything except the result, which may be long. */
function readNewest(tx: Tx, sessionIds: readonly string[], limit: number) {
  return tx.db
    .selectFrom('children')
    .select([
      'id',
      'parentSessionId',
      'laneKey',
      'depth',
      'label',
      'task',
      'mode',
      'agentId',
      'state',
      'status',
    ])
    .select(['promptTokens', 'completionTokens', 'cost', 'createdAt', 'startedAt', 'endedAt', 'archivedAt'])
    .where('parentSessionId', 'in', sessionIds)
    .orderBy('createdAt', 'desc')
    .limit(limit)
    .execute();
}

function viewOf(row: Row, usage: ChildUsage, known: ReadonlySet<string>): ChildView {
  const { id, parentSessionId, depth, agentId, state, createdAt } = row;
  return {
    ...{ id, depth, agentId, state, createdAt, name: excerptOf(row.label ?? row.task) },
    ...(known.has(parentSessionId) && { parentId: parentSessionId }),
    ...(row.status !== null && { status: row.status }),
    ...(row.startedAt !== null && { startedAt: row.startedAt }),
    ...(row.endedAt !== null && { endedAt: row.endedAt }),
    ...(row.archivedAt !== null && { isArchived: true }),
    ...(row.mode === 'task' && { isPeer: true }),
    tokens: usage.promptTokens + usage.completionTokens,
    cost: usage.cost,
  };
}

/** Reads the people whose messages the top run of a sub-agent's or task's tree took, as `<channel>:<peer>`. */
export const readRunSenders: StoreQuery<{ readonly id: string }, readonly string[]> = {
  query: 'readRunSenders',
  run: async (tx, { id }) => {
    const child = await findRow(tx, 'children', id, ['treeId']);
    const top = child ?? (await findRow(tx, 'tasks', id, ['treeId']));
    if (!top) return [];
    const rows = await tx.db
      .selectFrom('inbox')
      .select(['account', 'senderId'])
      .where('runId', '=', top.treeId)
      .where('source', '=', 'platform')
      .where('transcriptId', 'is not', null)
      .execute();
    return [...new Set(rows.map(senderRef))];
  },
};
