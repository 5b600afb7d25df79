import { sql } from 'kysely';
import type { ChildRecord } from '#contracts/child.ts';
import { isLaneClass } from '#contracts/lane-class.ts';
import type { Authority } from '#contracts/outcome.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { withoutNulls } from '../base/without-nulls.ts';
import { type Child, readChild } from './child-rows.ts';
import { readChildUsage } from './child-usage.ts';

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
