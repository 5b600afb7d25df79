/** Writes the states of runs; no other file does: `active ⇄ parked`, then `finished`. */

import { sql } from 'kysely';
import { ParleyError } from '#contracts/errors.ts';
import type { RunKind } from '#contracts/inbox-item.ts';
import type { Tx } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, insertRow, readRow } from '../base/row-access.ts';

export type NewRun = {
  readonly id: string;
  readonly laneKey: string;
  readonly sessionId: string;
  readonly kind: RunKind;
  readonly epoch: number;
  /** JSON of the reply route; null: the run is only recorded. */
  readonly route: string | null;
  readonly authority: string;
  /** The tree that the run's children belong to. */
  readonly treeId: string;
  /** Source key of the item of a task that it works on. */
  readonly taskItem: string | null;
  /** Name of its model. */
  readonly model: string;
  readonly reasoning: string | null;
};

/** Stores a new run, active in its first attempt. */
export async function beginRun(tx: Tx, run: NewRun): Promise<void> {
  const fresh = { state: 'active' as const, attempts: 1, isHandedOver: 0, nextOrdinal: 1, workedMs: 0 };
  await insertRow(tx, 'runs', { ...run, ...fresh, startedAt: tx.now });
}

/** Begins another attempt at the run, whether it was parked or active. */
export async function resumeRun(
  tx: Tx,
  { id, attempts, epoch }: { readonly id: string; readonly attempts: number; readonly epoch: number },
): Promise<void> {
  const fresh = { isHandedOver: 0, detail: null, parkedAt: null, parkReason: null, budgetWait: null };
  await changeRow(tx, 'runs', id, { ...fresh, state: 'active', attempts, epoch });
}

/** Records why the run's attempt broke off; kept until the next one begins. */
export async function noteFailure(tx: Tx, id: string, detail: string): Promise<void> {
  await changeRow(tx, 'runs', id, { detail });
}

/** Marks the unfinished run as handed over on purpose, so that this attempt doesn't count as failed. */
export async function handOverRun(tx: Tx, id: string): Promise<void> {
  await tx.db
    .updateTable('runs')
    .set({ isHandedOver: 1 })
    .where('id', '=', id)
    .where('state', '=', 'active')
    .execute();
}

export type RunPause = {
  readonly id: string;
  /** Names the outside result that the run is parked for. */
  readonly parkReason: string;
  /** How long it has worked in total, ms. */
  readonly workedMs: number;
  /** JSON of the budget whose lack of room it is parked for. */
  readonly budgetWait?: string;
};

/** Stops the run's clock and hands it over, parked if it has something to wait for. */
export async function pauseRun(
  tx: Tx,
  { id, budgetWait, ...pause }: RunPause,
  isParked: boolean,
): Promise<void> {
  const [state, parkedAt] = isParked ? (['parked', tx.now] as const) : (['active', null] as const);
  await changeRow(tx, 'runs', id, {
    state,
    parkedAt,
    budgetWait: (isParked && budgetWait) || null,
    isHandedOver: 1,
    ...pause,
  });
}

/** Ends the run's waiting, so that the next claim resumes it. Returns false when it isn't parked. */
export async function unparkRun(tx: Tx, id: string): Promise<boolean> {
  const { numUpdatedRows } = await tx.db
    .updateTable('runs')
    .set({ state: 'active', parkedAt: null, budgetWait: null })
    .where('id', '=', id)
    .where('state', '=', 'parked')
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Records the snapshot of the skills that the run has. */
export async function keepRunSkills(tx: Tx, id: string, skills: string): Promise<void> {
  await changeRow(tx, 'runs', id, { skills });
}

/** Records that the run has to stop; the first reason stays. */
export async function markCancelled(tx: Tx, id: string, cancelReason: string): Promise<void> {
  await tx.db
    .updateTable('runs')
    .set({ cancelReason })
    .where('id', '=', id)
    .where('cancelReason', 'is', null)
    .execute();
}

/**
 * Throws `invalid_input` for a run that was asked to stop or has ended, so that a tool that outlasts its run can't act
 * in its name. The caller holds the lane's lock, as the steps that stop or end a run do.
 */
export async function assertRunActive(tx: Tx, id: string): Promise<void> {
  const { state, cancelReason } = await readRow(tx, 'runs', id, ['state', 'cancelReason']);
  if (cancelReason !== null) throw new ParleyError('invalid_input', 'This run was asked to stop.');
  if (state === 'finished') throw new ParleyError('invalid_input', 'This run has ended.');
}

/** How a run ends. `parts`: how many its last step has stored, under the next ordinals. */
export type RunEnd = {
  readonly runId: string;
  readonly endReason: string;
  readonly detail: string | null;
  readonly parts: number;
};

/** Ends the run permanently, with its reason. The caller holds the lock of its lane, whose ends it counts. */
export async function finishRun(tx: Tx, { runId, endReason, detail, parts }: RunEnd): Promise<void> {
  await finish.post(tx, { runId, endReason, detail, parts, endedAt: tx.now });
}

const finish = prepared((db, of: QueryParams<RunEnd & { endedAt: number }>) =>
  db
    .updateTable('runs')
    .set((eb) => ({
      endReason: of.endReason,
      detail: of.detail,
      endedAt: of.endedAt,
      nextOrdinal: eb('nextOrdinal', '+', of.parts),
      state: 'finished',
      endNumber: sql<number>`1 + coalesce((
        select max(earlier."endNumber") from runs as earlier
        where earlier."laneKey" = runs."laneKey" and earlier."endNumber" is not null
      ), 0)`,
    }))
    .where('id', '=', of.runId),
);

/** The run that writes, and the epoch that proves its right to do so. */
export type RunFence = { readonly laneKey: string; readonly epoch: number; readonly runId: string };
