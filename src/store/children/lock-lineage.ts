/**
 * Lanes are locked ancestors first. Whatever ends a child's run also writes to the lanes and sessions above
 * it, so such a step locks those before its own; with them it has everything that its family's other steps
 * could wait for.
 */
import { sql } from 'kysely';
import type { Tx } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { type Lane, lockLane, lockLaneAt, lockLanes } from '../rows/lane-row.ts';
import { isChildLane } from './child-rows.ts';

/** Locks the lane that may end its run, and those above it if it is a child's. */
export async function lockLineage(tx: Tx, laneKey: string): Promise<Lane | undefined> {
  await lockAbove(tx, laneKey);
  return lockLane(tx, laneKey);
}

/** The same for the run's holder. Throws `stale_epoch`. */
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
