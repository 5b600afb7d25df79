import type { StoreCommand } from '../base/command.ts';
import { lockClassesOf } from '../children/class-room.ts';
import { chargeCost, closeModelCalls, type ModelCallEnd } from '../money/model-calls.ts';
import { endStalePauses, giveUpLease, releaseFreeLane, renewLease } from '../rows/lane-leases.ts';
import { lockLaneAt, lockLanes } from '../rows/lane-row.ts';
import type { RunFence } from '../rows/run-fence.ts';
import { handOverRun, noteFailure } from '../rows/run-states.ts';

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

/** Renews every lane lease of a process at once, and reads the cancel flags of its runs. */
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

/** Hands an unfinished run over on purpose: the next claim resumes it, and that is no failed attempt. */
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
  /** Why the attempt broke off, bounded and without secrets. */
  readonly failure?: string;
};

/**
 * Gives up the lease of a run that its holder has failed in and works on no more: after `pauseMs` the next
 * claim resumes it, which counts as an attempt. Repeating it lengthens the pause.
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

/** For a clock that has been set back: nobody waits until it was when a run was given up. Safe to repeat. */
export const resumePaused: StoreCommand<Record<never, never>, void> = {
  name: 'resumePaused',
  run: (tx) => endStalePauses(tx),
};

/** Gives back a lane that was kept to go on but has nothing to run. Repeating it changes nothing. */
export const releaseLane: StoreCommand<{ readonly laneKey: string; readonly holder: string }, void> = {
  name: 'releaseLane',
  run: (tx, { laneKey, holder }) => releaseFreeLane(tx, laneKey, holder),
};
