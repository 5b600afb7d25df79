import { type Selectable, sql } from 'kysely';
import { ParleyError } from '#contracts/errors.ts';
import type { Tx } from '../base/command.ts';
import { insertNewRow, insertRow } from '../base/insert-row.ts';
import type { LaneRef, LaneSpec } from '../base/lane-spec.ts';
import { oneOf } from '../base/one-of.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, plus } from '../base/row-by-key.ts';
import { locking } from '../base/row-locks.ts';
import type { LanesTable } from '../base/tables.ts';
import { followConfiguration } from './lane-settings.ts';

/** A lane's row. */
export type Lane = Selectable<LanesTable>;

/** Locks the lane's row. Every lane step begins here, because the row lock serialises the steps of one lane. */
export async function lockLane(tx: Tx, key: string): Promise<Lane | undefined> {
  return lockedLane.first(tx, { key });
}

/**
 * Locks several lanes by depth and key, so that two steps never wait for each other. A sub-agent's key contains its
 * parent's after an `@`, which doesn't occur in any segment of a key. A single writer (SQLite) needs no order.
 */
export async function lockLanes(tx: Tx, keys: readonly string[]): Promise<void> {
  if (tx.dialect === 'postgres' && keys.length > 0) await lockAndReadLanes(tx, keys);
}

/** Does the same, and returns those that exist. */
export function lockAndReadLanes(tx: Tx, keys: readonly string[]): Promise<readonly Lane[]> {
  const [key = ''] = keys;
  return keys.length === 1
    ? lockedLane.all(tx, { key })
    : lockedLanes.all(tx, { keys: JSON.stringify(keys) });
}

/**
 * Locks the lanes and returns those that exist. If there are several, missing ones with a description are made in the
 * same order, since other steps wait for a lane that is being made as for a locked one. A single lane is left to
 * `makeLane`, and so are all lanes on SQLite, whose single writer needs no order.
 */
export async function lockOrMakeLanes(tx: Tx, refs: readonly LaneRef[]): Promise<readonly Lane[]> {
  const specs = new Map<string, LaneSpec>();
  for (const ref of refs) if ('class' in ref && !specs.has(ref.key)) specs.set(ref.key, ref);
  const keys = [...new Set(refs.map(({ key }) => key))];
  if (tx.dialect !== 'postgres' || keys.length < 2 || specs.size === 0) return lockAndReadLanes(tx, keys);
  const described = [...specs.values()].map(newLaneOf);
  const [, lanes] = await Promise.all([
    makeMissingLanes.post(tx, { keys: JSON.stringify(keys), described: JSON.stringify(described) }),
    lockAndReadLanes(tx, keys),
  ]);
  return lanes;
}

/**
 * Does nothing if none of the described lanes is missing. Otherwise it goes through all keys in the order of
 * `lockLanes`; an existing lane conflicts with itself, which locks it without changing it.
 */
const makeMissingLanes = prepared((_, of: QueryParams<{ keys: string; described: string }>) => {
  const now = sql`(extract(epoch from clock_timestamp()) * 1000)::bigint`;
  return sql`
    with missing as (
      select * from json_populate_recordset(
        json_populate_record(null::lanes, json_build_object('lastActivityAt', ${now})), ${of.described}::json
      ) as described
      where (select lanes.key from lanes where lanes.key = described.key) is null
    ), made as (
      insert into lanes
      select * from (
        select * from missing
        union all
        select * from lanes where key = any(array(select json_array_elements_text(${of.keys}::json)))
      ) as wanted
      where exists (select 1 from missing)
      order by ${depth}, key
      on conflict (key) do update set key = excluded.key where false
      returning key, "sessionId", "agentId", "lastActivityAt"
    )
    insert into sessions (id, key, "agentId", "messageCount", "promptTokens", "completionTokens", cost, "createdAt", "updatedAt")
    select "sessionId", key, "agentId", 0, 0, 0, 0, "lastActivityAt", "lastActivityAt" from made`;
});

/** How many lanes are above a lane. */
const depth = sql<number>`length(key) - length(replace(key, '@', ''))`;

const lockedLanes = locking((db, of: QueryParams<{ keys: string }>, dialect) =>
  db
    .selectFrom('lanes')
    .selectAll()
    .where('key', ...oneOf(of.keys, dialect))
    .orderBy(depth)
    .orderBy('key'),
);

/**
 * Locks those of the lanes that no other transaction has locked, and returns their keys. It never waits, so it may also
 * be called by a step that has already locked a conversation, although lanes come before conversations.
 */
export async function tryLockLanes(tx: Tx, keys: readonly string[]): Promise<readonly string[]> {
  if (tx.dialect !== 'postgres' || keys.length === 0) return keys;
  const free = tx.db.selectFrom('lanes').select('key').where('key', 'in', keys).forUpdate().skipLocked();
  return (await free.execute()).map(({ key }) => key);
}

const lockedLane = locking((db, of: QueryParams<{ key: string }>) =>
  db.selectFrom('lanes').selectAll().where('key', '=', of.key),
);

/**
 * Locks the lane and proves that the caller still holds it. Throws `stale_epoch` when another worker has the lane, so
 * that nothing this caller writes may count any more.
 */
export async function lockLaneAt(tx: Tx, key: string, epoch: number): Promise<Lane> {
  const lane = await lockLane(tx, key);
  if (lane && lane.epoch === epoch) return lane;
  throw new ParleyError(
    'stale_epoch',
    `Lane ${key} is at epoch ${lane?.epoch ?? 'none'}, not ${epoch}: another worker holds it.`,
  );
}

/** Locks the lane; makes it and its first session when they don't exist. */
export async function ensureLane(tx: Tx, spec: LaneSpec): Promise<Lane> {
  const known = await lockLane(tx, spec.key);
  return known ? followConfiguration(tx, known, spec.settings) : makeLane(tx, spec);
}

/** Makes the lane with its first session, and locks it, even when another step has just made it. */
export async function makeLane(tx: Tx, spec: LaneSpec): Promise<Lane> {
  const isNew = await insertNewRow(tx, 'lanes', { ...newLaneOf(spec), lastActivityAt: tx.now });
  if (isNew) await insertSession(tx, { id: spec.newSessionId, key: spec.key, agentId: spec.agentId });
  const lane = await lockLane(tx, spec.key);
  if (!lane) throw new ParleyError('internal', `Lane ${spec.key} could not be made.`);
  return lane;
}

function newLaneOf({ key, class: name, agentId, chatKind, settings, newSessionId: sessionId }: LaneSpec) {
  return { key, class: name, agentId, chatKind, sessionId, epoch: 0, leaseUntil: 0, nextSeq: 1, ...settings };
}

async function insertSession(tx: Tx, session: { id: string; key: string; agentId: string }): Promise<void> {
  await insertRow(tx, 'sessions', {
    ...session,
    messageCount: 0,
    promptTokens: 0,
    completionTokens: 0,
    cost: 0,
    createdAt: tx.now,
    updatedAt: tx.now,
  });
}

/** Ends the lane's session and begins another under the same key; the old transcript stays readable. */
export async function beginSession(tx: Tx, lane: Lane, id: string): Promise<void> {
  await endSession(tx, lane.sessionId);
  await insertSession(tx, { id, key: lane.key, agentId: lane.agentId });
  await changeRow(tx, 'lanes', lane.key, { sessionId: id });
}

/** Ends a session; returns its row, or undefined if there is none. */
export async function endSession(
  tx: Tx,
  id: string,
): Promise<{ readonly ancestors: string | null } | undefined> {
  const ended = tx.db.updateTable('sessions').set({ endedAt: tx.now }).where('id', '=', id);
  return ended.returning('ancestors').executeTakeFirst();
}

/** Takes the next sequence number of the lane. The caller holds the row lock. */
export async function takeSeq(tx: Tx, laneKey: string): Promise<number> {
  const { nextSeq } = await advanceSeq.one(tx, { laneKey });
  return nextSeq - 1;
}

const advanceSeq = prepared((db, of: QueryParams<{ laneKey: string }>) =>
  db
    .updateTable('lanes')
    .set((eb) => ({ nextSeq: eb('nextSeq', '+', 1) }))
    .where('key', '=', of.laneKey)
    .returning('nextSeq'),
);

/** Takes a sequence number for a new arrival, whose row reads it, and sets the lane's last activity to now. */
export async function takeSeqOfArrival(tx: Tx, laneKey: string): Promise<void> {
  await changeRow(tx, 'lanes', laneKey, { nextSeq: plus(1), lastActivityAt: tx.now });
}
