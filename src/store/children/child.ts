/** Writes the states of children; no other file does: `queued → running → done`, and their one end. */

import { createHash } from 'node:crypto';
import { type Selectable, sql } from 'kysely';
import { parseJson } from '#channel-kit/parse-json.ts';
import type {
  ChildRecord,
  ChildRole,
  ChildStatus,
  ChildTold,
  ChildUsage,
  ForkPoint,
} from '#contracts/child.ts';
import { ParleyError } from '#contracts/errors.ts';
import { agentId, type SessionKey } from '#contracts/ids.ts';
import { isLaneClass } from '#contracts/lane-class.ts';
import type { Authority } from '#contracts/outcome.ts';
import { formatSessionKey } from '#contracts/session-key.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import type { InboxContent } from '../base/json.ts';
import type { LaneSpec } from '../base/keys.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, insertRow, withoutNulls } from '../base/row-access.ts';
import type { Tables } from '../base/tables.ts';
import { type Lane, lockLane, lockLaneAt, lockLanes } from '../rows/lane.ts';
import { beginTask, taskIn } from '../tasks/task.ts';

/** A sub-agent's row. */
export type Child = Selectable<Tables['children']>;

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/**
 * Returns the id of the call's child, and of its session: 80 bits of a hash, in base32. The run is part of the hash,
 * since servers repeat call ids.
 */
export function childIdOf(call: {
  readonly sessionId: string;
  readonly runId: string;
  readonly callId: string;
}): string {
  return base32Of(
    createHash('sha256')
      .update(JSON.stringify([call.sessionId, call.runId, call.callId]))
      .digest(),
  );
}

/** Returns the first 80 bits of a hash in base32. */
export function base32Of(hash: Buffer): string {
  let bits = 0n;
  for (const byte of hash.subarray(0, 10)) bits = (bits << 8n) | BigInt(byte);
  return Array.from({ length: 16 }, (_, n) => alphabet[Number((bits >> BigInt(75 - 5 * n)) & 31n)]).join('');
}

/**
 * Returns the first and the last id of a sub-agent or task that may begin with the text; undefined if none does. Any
 * index supports such a range.
 */
export function idsBeginning(text: string): { readonly first: string; readonly last: string } | undefined {
  const beginning = text.toLowerCase();
  if (!/^[a-z2-7]{1,16}$/.test(beginning)) return undefined;
  // Ids have 16 letters and digits, and digits sort first.
  return { first: beginning.padEnd(16, '2'), last: beginning.padEnd(16, 'z') };
}

/** Returns a child's lane, whose mode makes its parent's messages reach it at its next step. */
export function childLane(child: {
  readonly id: string;
  readonly agent: string;
  readonly depth: number;
  readonly parent: SessionKey;
}): LaneSpec {
  const { id, agent, depth, parent } = child;
  const name = `sub-${depth}`;
  return {
    key: formatSessionKey({ kind: 'sub-agent', agent: agentId(agent), depth, child: id, parent }),
    // A child deeper than the last class is refused by the step.
    class: isLaneClass(name) ? name : 'sub-5',
    agentId: agent,
    chatKind: 'dm',
    settings: { mode: 'steer', debounceMs: 0, quietMs: 0, cap: 20, drop: 'summarize' },
    newSessionId: id,
  };
}

/** Returns the source key of the item that announces the child's end to its parent. */
export function announcementKeyOf(child: string): string {
  return `child:${child}`;
}

/** Says whether an item of a child announces its end; others are its task, or steer it. */
export function isAnnouncement(sourceKey: string | null): boolean {
  return sourceKey?.startsWith('child:') === true;
}

/** Says whether the lane is a child's: only those keys begin with the codec's reserved word. */
export function isChildLane(laneKey: string): boolean {
  return laneKey.startsWith('agent:');
}

/** Reads the child with that id; undefined when there is none. */
export function readChild(tx: Tx, id: string): Promise<Child | undefined> {
  return childById.first(tx, { id });
}

const childById = prepared((db, of: QueryParams<{ id: string }>) =>
  db.selectFrom('children').selectAll().where('id', '=', of.id),
);

/** Reads the child that works in the lane. */
export function readChildIn(tx: Tx, laneKey: string): Promise<Child | undefined> {
  return childByLane.first(tx, { laneKey });
}

const childByLane = prepared((db, of: QueryParams<{ laneKey: string }>) =>
  db.selectFrom('children').selectAll().where('laneKey', '=', of.laneKey),
);

/** Reads the sessions' children that haven't ended, oldest first; with `runIds`, only those of these runs. */
export function readLiveChildren(
  tx: Tx,
  {
    sessionIds,
    runIds,
  }: { readonly sessionIds: readonly string[]; readonly runIds?: readonly string[] | undefined },
): Promise<readonly Child[]> {
  let query = tx.db
    .selectFrom('children')
    .selectAll()
    .where('parentSessionId', 'in', sessionIds)
    .where('endedAt', 'is', null)
    .orderBy('createdAt')
    .orderBy('id');
  if (runIds !== undefined) query = query.where('parentRunId', 'in', runIds);
  return query.execute();
}

type Fresh = 'state' | 'status' | 'result' | 'told' | 'stopReason' | 'stopAt';
type Times = 'createdAt' | 'startedAt' | 'endedAt' | 'archivedAt';
export type NewChild = Omit<Child, Fresh | Times | keyof ChildUsage>;

/** Stores a new child, queued. Throws when one with that id exists. */
export async function insertChild(tx: Tx, spawned: NewChild): Promise<Child> {
  const child = {
    ...spawned,
    ...{ state: 'queued', createdAt: tx.now, promptTokens: 0, completionTokens: 0, cost: 0 },
    ...{ status: null, result: null, told: null, stopReason: null, stopAt: null },
    ...{ startedAt: null, endedAt: null, archivedAt: null },
  } satisfies Child;
  await insertRow(tx, 'children', child);
  return child;
}

/** Marks the child as running at its lane's first claim, which starts its time limit. Repeating changes nothing. */
async function startChild(tx: Tx, { id, timeoutMs, deadlineAt }: Child): Promise<void> {
  const ownDeadline = timeoutMs === null ? deadlineAt : tx.now + timeoutMs;
  await tx.db
    .updateTable('children')
    .set({ state: 'running', startedAt: tx.now, deadlineAt: Math.min(deadlineAt, ownDeadline) })
    .where('id', '=', id)
    .where('state', '=', 'queued')
    .execute();
}

export type StopMark = { readonly reason: string; readonly stopAt: number };

/** Records that the child has to stop. `overrides`: the reason replaces an earlier one. */
export async function markStopping(
  tx: Tx,
  child: Child,
  { reason, stopAt, overrides }: StopMark & { readonly overrides: boolean },
): Promise<Child> {
  const stopReason = child.stopReason === null || overrides ? reason : child.stopReason;
  const mark = { stopReason, stopAt: child.stopAt ?? stopAt };
  await changeRow(tx, 'children', child.id, mark);
  return { ...child, ...mark };
}

export type ChildEnd = {
  readonly status: ChildStatus;
  readonly result: string;
  readonly usage: ChildUsage;
  readonly told: ChildTold;
};

/** Ends the child, which writes its final record. */
export async function endChild(tx: Tx, id: string, { status, result, usage, told }: ChildEnd): Promise<void> {
  await tx.db
    .updateTable('children')
    .set({ state: 'done', status, result, told, endedAt: tx.now, ...usage })
    .where('id', '=', id)
    .where('state', '<>', 'done')
    .execute();
}

/** Removes an ended child from the lists of recent ones. Its row and transcript stay. */
export async function archiveChild(tx: Tx, id: string): Promise<void> {
  await tx.db
    .updateTable('children')
    .set({ archivedAt: tx.now })
    .where('id', '=', id)
    .where('archivedAt', 'is', null)
    .execute();
}

/**
 * Sums the model calls so far of all runs in the child's lane. The cost of its own children isn't included; it is
 * charged to the sessions above them as they end.
 */
export function readChildUsage(tx: Tx, laneKey: string): Promise<ChildUsage> {
  return usageOf.one(tx, { laneKey });
}

const usageOf = prepared(
  (_, of: QueryParams<{ laneKey: string }>) => sql<ChildUsage>`
    select cast(coalesce(sum("inputTokens" + "cacheReadTokens" + "cacheWriteTokens"), 0) as bigint) as "promptTokens",
      cast(coalesce(sum("outputTokens"), 0) as bigint) as "completionTokens",
      cast(coalesce(sum(cost), 0) as bigint) as cost
    from "modelCalls"
    where "runId" in (select "runId" from inbox where "laneKey" = ${of.laneKey} and "runId" is not null)`,
);

/** Everything that distinguishes a sub-agent's run from others. */
export type ChildRun = {
  readonly role: ChildRole;
  /** Where its history begins; undefined for an isolated one. */
  readonly fork: ForkPoint | undefined;
  /** By the database's clock, ms. */
  readonly deadlineAt: number;
};

/** Reads it by the sub-agent's session. Throws `internal` if that has no role, which would give it all rights. */
export const readChildRun: StoreQuery<{ readonly sessionId: string }, ChildRun> = {
  query: 'readChildRun',
  run: async (tx, { sessionId }) => {
    const row = await tx.db
      .selectFrom('sessions')
      .innerJoin('children', 'children.id', 'sessions.id')
      .select(['sessions.role', 'sessions.forkedFrom', 'children.deadlineAt'])
      .where('sessions.id', '=', sessionId)
      .executeTakeFirst();
    if (!row || row.role === null) throw new ParleyError('internal', `Sub-agent ${sessionId} has no role.`);
    // The store wrote both at the spawn.
    const fork = row.forkedFrom === null ? undefined : (parseJson(row.forkedFrom) as ForkPoint);
    return { role: parseJson(row.role) as ChildRole, fork, deadlineAt: row.deadlineAt };
  },
};

/**
 * Returns the tree of the run that `head` begins; undefined when the run begins its own. A child's run, and a run that
 * begins with a child's announcement or an item of a task, count against that tree; otherwise announcements would renew
 * the budget forever. The first run of a child or of a task starts it.
 */
export async function treeOf(
  tx: Tx,
  lane: Lane,
  head: { readonly sourceKey: string | null },
): Promise<string | undefined> {
  if (isChildLane(lane.key)) {
    const child = await readChildIn(tx, lane.key);
    if (child?.state === 'queued') await startChild(tx, child);
    return child?.treeId;
  }
  const taskId = taskIn(head.sourceKey);
  if (taskId !== undefined) return (await beginTask(tx, taskId))?.treeId;
  const announced = /^child:(.+)$/.exec(head.sourceKey ?? '')?.[1];
  return announced === undefined ? undefined : (await readChild(tx, announced))?.treeId;
}

const stops: ReadonlySet<string> = new Set(['stop', 'revoked', 'reset', 'interrupt']);

/** Returns the status of a child whose last run ended for this reason. */
export function statusOfEnd(endReason: string | null): ChildStatus {
  if (endReason === 'natural') return 'completed';
  if (endReason === 'timeout') return 'timed-out';
  return endReason !== null && stops.has(endReason) ? 'stopped' : 'failed';
}

/** Returns the content of an item that Parley itself puts into a lane. `prompt`: the text as the model reads it. */
export function innerContent(tx: Tx, text: string, prompt = text): InboxContent {
  return { text, prompt, sender: { id: '', name: '' }, sentAt: tx.now, attachments: [] };
}

// Lanes are locked ancestors first. A step that ends a child's run also writes to the lanes and sessions above it, so
// it locks those before its own lane; it then holds everything that other steps of its family could wait for.

/** Locks a lane whose run may end, and those above it if it is a child's. */
export async function lockLineage(tx: Tx, laneKey: string): Promise<Lane | undefined> {
  await lockAbove(tx, laneKey);
  return lockLane(tx, laneKey);
}

/** Does the same for the run's holder. Throws `stale_epoch`. */
export async function lockLineageAt(tx: Tx, laneKey: string, epoch: number): Promise<Lane> {
  await lockAbove(tx, laneKey);
  return lockLaneAt(tx, laneKey, epoch);
}

/** Locks the lanes above a child's. */
export async function lockAbove(tx: Tx, laneKey: string): Promise<void> {
  if (tx.dialect !== 'postgres' || !isChildLane(laneKey)) return;
  const above = await laneKeysAbove.all(tx, { laneKey });
  await lockLanes(
    tx,
    above.map(({ key }) => key),
  );
}

const laneKeysAbove = prepared(
  (_, of: QueryParams<{ laneKey: string }>) => sql<{ key: string }>`
    with recursive above(key) as (
      select "parentLaneKey" from children where "laneKey" = ${of.laneKey}
      union all
      select children."parentLaneKey" from children join above on children."laneKey" = above.key
    )
    select key from above`,
);

/**
 * Reads the children below the session, or of the tree, newest first, without their results, which may be long. If
 * there are more than `limit`, live ones below the session are preferred, then the newest.
 */
export const readChildren: StoreQuery<
  { readonly sessionId?: string; readonly treeId?: string; readonly limit: number },
  readonly ChildRecord[]
> = {
  query: 'readChildren',
  run: async (tx, { sessionId, treeId, limit }) => {
    let query = tx.db.selectFrom('children').select(listedColumns);
    if (treeId !== undefined) query = query.where('treeId', '=', treeId);
    if (sessionId !== undefined) {
      const ids = await idsBelow(tx, sessionId, limit);
      if (ids.length === 0) return [];
      query = query.where('id', 'in', ids);
    }
    const rows = await query.orderBy('createdAt', 'desc').orderBy('id').limit(limit).execute();
    const records: ChildRecord[] = [];
    for (const row of rows) records.push(await currentRecord(tx, { ...row, result: null }));
    return records;
  },
};

/** Returns the record with the child's usage so far, which the row only contains once the child has ended. */
async function currentRecord(tx: Tx, row: Child): Promise<ChildRecord> {
  const usage = row.state === 'done' ? {} : await readChildUsage(tx, row.laneKey);
  return recordOf({ ...row, ...usage });
}

const listedColumns = [
  ...(['id', 'treeId', 'parentSessionId', 'parentLaneKey', 'parentRunId', 'parentCallId'] as const),
  ...(['laneKey', 'laneClass', 'agentId', 'depth', 'label', 'task', 'mode', 'route', 'authority'] as const),
  ...(['state', 'status', 'promptTokens', 'completionTokens', 'cost', 'told', 'stopReason'] as const),
  ...(['stopAt', 'timeoutMs', 'deadlineAt', 'createdAt', 'startedAt', 'endedAt', 'archivedAt'] as const),
] as const;

/** Reads ids below the session, live ones first: there may be thousands, and only those can still be directed. */
async function idsBelow(tx: Tx, sessionId: string, limit: number): Promise<readonly string[]> {
  const { rows } = await sql<{ readonly id: string }>`
    with recursive below(id, "createdAt", "endedAt") as (
      select id, "createdAt", "endedAt" from children where "parentSessionId" = ${sessionId}
      union all
      select children.id, children."createdAt", children."endedAt"
        from children join below on children."parentSessionId" = below.id
    )
    select id from below order by "endedAt" is not null, "createdAt" desc limit ${sql.lit(limit)}`.execute(
    tx.db,
  );
  return rows.map(({ id }) => id);
}

/** Reads a child by its id, with its result. */
export const findChild: StoreQuery<{ readonly childId: string }, ChildRecord | undefined> = {
  query: 'findChild',
  run: async (tx, { childId }) => {
    const row = await readChild(tx, childId);
    return row && currentRecord(tx, row);
  },
};

/** Returns the row as other folders read it. */
export function recordOf(row: Child): ChildRecord {
  const { route: _route, timeoutMs: _timeout, stopReason: _reason, ...child } = withoutNulls(row);
  const { promptTokens, completionTokens, cost, ...rest } = child;
  return {
    ...rest,
    sessionId: row.id,
    // The store wrote it at the spawn.
    authority: row.authority as Authority,
    laneClass: isLaneClass(row.laneClass) ? row.laneClass : 'sub-1',
    usage: { promptTokens, completionTokens, cost },
  };
}
