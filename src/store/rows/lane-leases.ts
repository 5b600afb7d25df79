/**
 * Writes who may work a lane and until when (`holder`, `leaseUntil`, `epoch`, `runId`); no other file does. The sweep
 * looks for lanes with a run and no live lease. The callers hold the lane's lock.
 */

import type { Tx } from '../base/command.ts';
import { isReservedLane } from '../base/index-predicates.ts';
import { changeRow, plus } from '../base/row-by-key.ts';
import { lockLanes } from './lane-row.ts';

/** Times in ms since the epoch, by the database's clock. */
export type LaneHold = {
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
export async function renewLease(tx: Tx, { laneKey, epoch, ...lease }: LaneHold): Promise<boolean> {
  const { numUpdatedRows } = await tx.db
    .updateTable('lanes')
    .set({ leaseUntil: lease.leaseUntil })
    .where('key', '=', laneKey)
    .where('epoch', '=', epoch)
    .where('holder', '=', lease.holder)
    .where('runId', '=', lease.runId)
    .where((eb) => eb.or([eb('class', 'not like', 'sub-%'), eb('leaseUntil', '>', tx.now)]))
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

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
