/**
 * Lanes are locked ancestors first. A step that ends a child's run also writes to the lanes and sessions above it, so
 * it locks those before its own lane; it then holds everything that other steps of its family could wait for.
 */
import { sql } from 'kysely';
import type { Tx } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { type Lane, lockLane, lockLaneAt, lockLanes } from '../rows/lane-row.ts';
import { isChildLane } from './child-rows.ts';

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
