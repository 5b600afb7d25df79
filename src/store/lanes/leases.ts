import type { StoreCommand } from '../base/command.ts';
import { lockClassesOf } from '../children/class-room.ts';
import { chargeCost, closeModelCalls, type ModelCallEnd } from '../money/model-call.ts';
import {
  endStalePauses,
  giveUpLease,
  lockLaneAt,
  lockLanes,
  releaseFreeLane,
  renewLease,
} from '../rows/lane.ts';
import { handOverRun, noteFailure, type RunFence } from '../rows/run.ts';

export type Renewal = {
  readonly holder: string;
  readonly leaseMs: number;
  readonly runs: readonly RunFence[];
};

export type RenewResult = {
  /** Runs whose lane another worker has claimed: they must stop. */
  readonly lost: readonly string[];
  readonly cancels: readonly { readonly runId: string; readonly reason: string }[];
};

/** Renews all lane leases of a process in one step, and reads the cancel flags of its runs. */
export const renewLeases: StoreCommand<Renewal, RenewResult> = {
  name: 'renewLeases',
  run: async (tx, input) => {
    const lost: string[] = [];
    const lanes = input.runs.map(({ laneKey }) => laneKey);
    await lockLanes(tx, lanes);
    await lockClassesOf(tx, lanes);
    for (const run of input.runs) {
      const { holder } = input;
      const isRenewed = await renewLease(tx, { ...run, holder, leaseUntil: tx.now + input.leaseMs });
      if (!isRenewed) lost.push(run.runId);
    }
    const ids = input.runs.map((run) => run.runId);
    if (ids.length === 0) return { lost, cancels: [] };
    const flagged = await tx.db
      .selectFrom('runs')
      .select(['id', 'cancelReason'])
      .where('id', 'in', ids)
      .where('cancelReason', 'is not', null)
      .execute();
    return { lost, cancels: flagged.map((row) => ({ runId: row.id, reason: row.cancelReason ?? '' })) };
  },
};

/** Hands over an unfinished run on purpose: the next claim resumes it, which doesn't count as a failed attempt. */
export const handOver: StoreCommand<RunFence & { readonly modelCalls?: readonly ModelCallEnd[] }, void> = {
  name: 'handOver',
  run: async (tx, input) => {
    const { sessionId } = await lockLaneAt(tx, input.laneKey, input.epoch);
    await chargeCost(tx, sessionId, await closeModelCalls(tx, input.runId, input.modelCalls ?? []));
    await giveUpLease(tx, input.laneKey, tx.now);
    await handOverRun(tx, input.runId);
  },
};

export type FailedRun = RunFence & {
  readonly pauseMs: number;
  /** Why the attempt failed; bounded and without secrets. */
  readonly failure?: string;
};

/**
 * Releases a failed run's lease; after `pauseMs` the next claim resumes the run, which counts as an attempt. Repeating
 * it extends the pause.
 */
export const releaseFailedRun: StoreCommand<FailedRun, void> = {
  name: 'releaseFailedRun',
  run: async (tx, { laneKey, epoch, runId, pauseMs, failure }) => {
    const lane = await lockLaneAt(tx, laneKey, epoch);
    if (lane.runId !== runId) return;
    await giveUpLease(tx, laneKey, tx.now + pauseMs);
    if (failure !== undefined) await noteFailure(tx, runId, failure);
  },
};

/** Ends the pauses of failed runs that would last too long because the clock was set back. Safe to repeat. */
export const resumePaused: StoreCommand<Record<never, never>, void> = {
  name: 'resumePaused',
  run: (tx) => endStalePauses(tx),
};

/** Releases a lane that was kept for its next run but has nothing to run. Repeating it changes nothing. */
export const releaseLane: StoreCommand<{ readonly laneKey: string; readonly holder: string }, void> = {
  name: 'releaseLane',
  run: (tx, { laneKey, holder }) => releaseFreeLane(tx, laneKey, holder),
};
