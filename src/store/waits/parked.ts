/**
 * A run that waits for something outside is parked: its lane keeps the run, so that no other begins, but
 * has no holder, and a lease that never ends, so that nothing that looks for what should be moving comes
 * past it. Whoever sets a cancel flag, or settles the last call, gives the lane a lease that has ended.
 */
import type { StoreQuery, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import type { Lane } from '../rows/lane-row.ts';

/** The last moment that a date can hold, ms. */
export const parkedUntil = 8_640_000_000_000_000;

export type ParkedRun = { readonly runId: string; readonly reason: string };

/** The run that the lane has parked, and what it waits for. */
export const readParked: StoreQuery<{ readonly laneKey: string }, ParkedRun | undefined> = {
  query: 'readParked',
  run: async (tx, { laneKey }) => {
    const row = await tx.db
      .selectFrom('lanes')
      .innerJoin('runs', 'runs.id', 'lanes.runId')
      .select(['runs.id', 'runs.parkReason'])
      .where('lanes.key', '=', laneKey)
      .where('lanes.leaseUntil', '=', parkedUntil)
      .executeTakeFirst();
    return row && { runId: row.id, reason: row.parkReason ?? '' };
  },
};

export function isParked(lane: Pick<Lane, 'runId' | 'leaseUntil'>): boolean {
  return lane.runId !== null && lane.leaseUntil === parkedUntil;
}

/** Lets the parked run be claimed and go on. The caller holds the lane's lock. */
export async function unpark(tx: Tx, lane: Lane, effects: Pick<Effects, 'wakes'>): Promise<void> {
  await tx.db.updateTable('lanes').set({ leaseUntil: tx.now }).where('key', '=', lane.key).execute();
  await tx.db.updateTable('runs').set({ parkedAt: null }).where('id', '=', lane.runId).execute();
  effects.wakes.push({ laneKey: lane.key, class: lane.class, delayMs: 0 });
}

/**
 * Asks the lane's run to stop; the first reason stays. A parked run is claimed once more, to end. The
 * caller holds the lane's lock: a flag that is set beside it could be missed by the step that parks.
 */
export async function cancelRun(
  tx: Tx,
  lane: Lane,
  { reason, effects }: { readonly reason: string; readonly effects: Pick<Effects, 'cancels' | 'wakes'> },
): Promise<void> {
  if (lane.runId === null) return;
  await tx.db
    .updateTable('runs')
    .set({ cancelReason: reason })
    .where('id', '=', lane.runId)
    .where('cancelReason', 'is', null)
    .execute();
  effects.cancels.push({ runId: lane.runId, reason });
  if (isParked(lane)) await unpark(tx, lane, effects);
}
