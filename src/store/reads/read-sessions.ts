import type { StoreQuery, Tx } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { type RowOf, type WithoutNulls, withoutNulls } from '../base/without-nulls.ts';

/** A session as shown in lists. */
export type SessionSummary = WithoutNulls<RowOf<typeof sessionRows>>;

function sessionRows(tx: Tx) {
  return tx.db
    .selectFrom('sessions')
    .select(['id', 'key', 'agentId', 'title', 'messageCount', 'promptTokens', 'completionTokens', 'cost'])
    .select(['model', 'instructionTokens', 'toolTokens', 'createdAt', 'updatedAt']);
}

/**
 * Reads the latest sessions, or those with the given keys or ids. Sessions that name others aren't listed. The latest
 * one of a key needn't be its lane's current session: a note about an earlier session's message updates that session.
 */
export const readSessions: StoreQuery<
  { readonly keys?: readonly string[]; readonly ids?: readonly string[]; readonly limit: number },
  readonly SessionSummary[]
> = {
  query: 'readSessions',
  run: async (tx, { keys, ids, limit }) => {
    let query = sessionRows(tx).orderBy('updatedAt', 'desc').limit(limit);
    if (keys) query = query.where('key', 'in', keys);
    else if (ids) query = query.where('id', 'in', ids);
    else query = query.where('id', 'not like', 'title-%');
    return (await query.execute()).map(withoutNulls);
  },
};

/** The state of a lane, for `/status` and `/queue`. */
export type LaneStatus = Awaited<ReturnType<typeof readStatus>>;

/** Reads a lane's state; undefined before its first message. */
export const readLaneStatus: StoreQuery<{ readonly laneKey: string }, LaneStatus> = {
  query: 'readLaneStatus',
  run: (tx, { laneKey }) => readStatus(tx, laneKey),
};

async function readStatus(tx: Tx, laneKey: string) {
  const lane = await tx.db
    .selectFrom('lanes')
    .leftJoin('runs', 'runs.id', 'lanes.runId')
    .select(['lanes.key', 'lanes.sessionId', 'mode', 'debounceMs', 'quietMs', 'cap', 'drop', 'overrides'])
    .select(['lanes.runId', 'runs.startedAt as runStartedAt', 'runs.parkedAt'])
    .where('lanes.key', '=', laneKey)
    .executeTakeFirst();
  if (!lane) return undefined;
  const waiting = await tx.db
    .selectFrom('inbox')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('laneKey', '=', laneKey)
    .where(isOpenItem())
    .executeTakeFirst();
  return {
    ...withoutNulls(lane),
    /** Settings made with `/queue` for this lane. */
    overrides: json.queueSettings(lane.overrides),
    isRunning: lane.runId !== null,
    waiting: Number(waiting?.count ?? 0),
  };
}
