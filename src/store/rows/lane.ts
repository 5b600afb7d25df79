import { type Selectable, sql } from 'kysely';
import { ParleyError } from '#contracts/errors.ts';
import type { QueueSettings } from '#contracts/queue-settings.ts';
import type { Tx } from '../base/command.ts';
import { isReservedLane } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import type { LaneRef, LaneSpec } from '../base/keys.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, insertNewRow, insertRow, locking, oneOf, plus } from '../base/row-access.ts';
import type { LanesTable } from '../base/tables.ts';

/** A lane's row. */
export type Lane = Selectable<LanesTable>;

/** Locks the lane's row. Every lane step begins here, because the row lock serializes the steps of one lane. */
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

/**
 * Returns the lane with its effective settings: each one made with `/queue` takes precedence; all others follow the
 * configuration, which intake reads for every event.
 */
export async function followConfiguration(tx: Tx, lane: Lane, configured: QueueSettings): Promise<Lane> {
  const settings = { ...configured, ...json.queueSettings(lane.overrides) };
  const isSame =
    lane.mode === settings.mode &&
    lane.debounceMs === settings.debounceMs &&
    lane.quietMs === settings.quietMs &&
    lane.cap === settings.cap &&
    lane.drop === settings.drop;
  if (isSame) return lane;
  await writeSettings(tx, lane, settings);
  return { ...lane, ...settings };
}

/**
 * Overrides settings of the lane, in addition to earlier overrides; `reset` leaves all settings to the configuration.
 * The caller holds the lane's lock. Repeating it changes nothing.
 */
export async function changeSettings(
  tx: Tx,
  lane: Lane,
  { change, configured }: { change: Partial<QueueSettings> | 'reset'; configured: QueueSettings },
): Promise<QueueSettings> {
  const named = change === 'reset' ? {} : { ...json.queueSettings(lane.overrides), ...change };
  const overrides = change === 'reset' ? null : JSON.stringify(named);
  const settings = { ...configured, ...named };
  await writeSettings(tx, lane, settings);
  await changeRow(tx, 'lanes', lane.key, { overrides });
  return settings;
}

async function writeSettings(tx: Tx, { key }: Lane, settings: QueueSettings): Promise<void> {
  const { mode, debounceMs, quietMs, cap, drop } = settings;
  await changeRow(tx, 'lanes', key, { mode, debounceMs, quietMs, cap, drop });
}

// Writes who may work a lane and until when (`holder`, `leaseUntil`, `epoch`, `runId`); no other file does. The sweep
// looks for lanes with a run and no live lease. The callers hold the lane's lock.

/** Times in ms since the epoch, by the database's clock. */
type LaneHold = {
  readonly laneKey: string;
  readonly epoch: number;
  readonly runId: string;
  readonly holder: string;
  readonly leaseUntil: number;
};

/** Gives the lane to a holder at an epoch, for a run; `leaseUntil` in ms by the database's clock. */
export async function holdLane(tx: Tx, { laneKey, ...hold }: LaneHold): Promise<void> {
  const { epoch, runId, holder, leaseUntil } = hold;
  await changeRow(tx, 'lanes', laneKey, { epoch, runId, holder, leaseUntil });
}

/**
 * Extends the lease; returns false when the lane no longer belongs to the holder. A sub-agent's expired lease can't be
 * renewed, since its place in the class may have gone to another.
 */
export async function renewLease(tx: Tx, hold: LaneHold): Promise<boolean> {
  return (await extendLease.run(tx, { ...hold, now: tx.now })) > 0;
}

const extendLease = prepared((db, of: QueryParams<LaneHold & { now: number }>) =>
  db
    .updateTable('lanes')
    .set({ leaseUntil: of.leaseUntil })
    .where('key', '=', of.laneKey)
    .where('epoch', '=', of.epoch)
    .where('holder', '=', of.holder)
    .where('runId', '=', of.runId)
    .where((eb) => eb.or([eb('class', 'not like', 'sub-%'), eb('leaseUntil', '>', of.now)])),
);

/** Gives up the lease: from `leaseUntil` on the lane may be claimed, starting with its run. */
export async function giveUpLease(tx: Tx, laneKey: string, leaseUntil: number): Promise<void> {
  await changeRow(tx, 'lanes', laneKey, { holder: null, leaseUntil });
}

/** Longest pause of a lane that was given up, ms; a longer one means that the clock has been set back since. */
const longestPauseMs = 60_000;

/** Frees the lanes of runs that were given up before the clock was set back. Parked runs keep waiting. */
export async function endStalePauses(tx: Tx): Promise<void> {
  await tx.db
    .updateTable('lanes')
    .set({ leaseUntil: tx.now })
    .where('runId', 'is not', null)
    .where('holder', 'is', null)
    .where('leaseUntil', '>', tx.now + longestPauseMs)
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('runs')
          .select('runs.id')
          .whereRef('runs.id', '=', 'lanes.runId')
          .where('runs.state', '!=', 'parked'),
      ),
    )
    .execute();
}

/** Raises the lane's epoch, so that writes under the old one are rejected from here on. */
export async function raiseEpoch(tx: Tx, laneKey: string, epoch: number): Promise<void> {
  await changeRow(tx, 'lanes', laneKey, { epoch });
}

/** Releases a lane without a run. Changes nothing if it has one, or if another process holds it. */
export async function releaseFreeLane(tx: Tx, laneKey: string, holder: string): Promise<void> {
  await tx.db
    .updateTable('lanes')
    .set({ holder: null, leaseUntil: 0 })
    .where('key', '=', laneKey)
    .where('holder', '=', holder)
    .where('runId', 'is', null)
    .execute();
}

type LaneExit = { readonly laneKey: string; readonly parts: number };

/** Removes the ended run from the lane. `isKept`: the holder keeps the lane, to continue with what is due. */
export async function endLaneRun(tx: Tx, { laneKey, parts }: LaneExit, isKept: boolean): Promise<void> {
  const free = isKept ? {} : { holder: null, leaseUntil: 0 };
  const ended = { runId: null, lastActivityAt: tx.now, nextSeq: plus(parts) };
  await changeRow(tx, 'lanes', laneKey, { ...ended, ...free });
}

/** Ends the leases of dead processes. Repeating it changes nothing. */
export async function voidLaneLeases(tx: Tx, holders: readonly string[]): Promise<void> {
  if (tx.dialect === 'postgres') {
    const lanes = tx.db.selectFrom('lanes').select('key').where('holder', 'in', holders);
    const kept = lanes.where('runId', 'is', null).where(isReservedLane());
    const held = await lanes.where('runId', 'is not', null).union(kept).execute();
    await lockLanes(
      tx,
      held.map(({ key }) => key),
    );
  }
  // Two updates, each using its own index: lanes with a run, and those kept between two runs.
  await tx.db
    .updateTable('lanes')
    // Ended now, because the sweep counts from here how long an unfinished run has waited.
    .set({ holder: null, leaseUntil: tx.now })
    .where('runId', 'is not', null)
    .where('holder', 'in', holders)
    .execute();
  await tx.db
    .updateTable('lanes')
    .set({ holder: null, leaseUntil: 0 })
    .where('runId', 'is', null)
    .where(isReservedLane())
    .where('holder', 'in', holders)
    .execute();
}
