import type { Clock } from '#contracts/clock.ts';
import { hasCode } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { Probe } from '#contracts/probe.ts';
import { faultText } from '../agent/fault-text.ts';
import type { ClaimModels } from '../models/models.ts';
import type { FailureStreaks } from '../queue/failure-streaks.ts';
import type { LaneDriver } from '../queue/lane-workers.ts';
import type { Wakes } from '../queue/wakes.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { newRowId } from '../store/base/keys.ts';
import { type Claim, type ClaimedRun, type ClaimInput, claimLane } from '../store/lanes/claim-lane.ts';
import { releaseFailedRun, releaseLane } from '../store/lanes/leases.ts';
import type { TextFraming } from '../store/lanes/take-rows.ts';
import type { RunExit, RunOptions } from './execute-run.ts';

export type DriveLaneDeps = ClaimModels & {
  readonly store: Store;
  readonly holder: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  readonly wakes: Wakes;
  readonly leaseMs: number;
  readonly maxAttempts: number;
  /** Removes secrets from a text before it is stored. */
  redact(text: string): string;
  /** Rates of every model, by name. */
  readonly rates?: ClaimInput['rates'];
  readonly uncounted?: ClaimInput['uncounted'];
  /** How many lanes of each sub-agent class may run at once, across all processes. */
  readonly caps?: ClaimInput['caps'];
  readonly marks?: ClaimInput['marks'];
  /** A busy lane yields to others after this many runs or this long, ms. */
  readonly maxRuns: number;
  readonly maxHoldMs: number;
  /** Counts what fails in a row; absent where nobody asks. */
  readonly failures?: Pick<FailureStreaks, 'failed' | 'worked'>;
  framing(): TextFraming;
  start(effects: Effects): void;
  /** Executes one run; undefined when it was lost. */
  execute(run: ClaimedRun, options: RunOptions): Promise<RunExit | undefined>;
};

/** Performs steps 4 to 7: claims the lane and works it until it is idle, armed or yields. */
export function createLaneDriver(deps: DriveLaneDeps): LaneDriver {
  const terms = () => ({
    holder: deps.holder,
    leaseMs: deps.leaseMs,
    maxAttempts: deps.maxAttempts,
    models: deps.turnModels,
    titleModels: deps.titleModels,
    rates: deps.rates,
    uncounted: deps.uncounted,
    caps: deps.caps,
    marks: deps.marks,
  });
  const claimTerms = () => ({ ...terms(), newRunId: newRowId() });
  return {
    drive: (laneKey, signal) => workWatched(deps, { laneKey, claimTerms, signal }),
    continueRun: (run, signal) => workWatched(deps, { laneKey: run.laneKey, claimTerms, signal }, run),
    termsFor: (count) => ({
      ...terms(),
      framing: deps.framing(),
      newRunIds: Array.from({ length: count }, () => newRowId()),
    }),
  };
}

type LaneWork = {
  readonly laneKey: string;
  claimTerms(): Omit<ClaimInput, 'laneKey' | 'framing'>;
  readonly signal: AbortSignal;
};

async function workWatched(deps: DriveLaneDeps, lane: LaneWork, begun?: ClaimedRun): Promise<void> {
  try {
    await work(deps, lane, begun);
  } catch (error) {
    deps.failures?.failed(lane.laneKey, error);
    throw error;
  }
}

/** `begun`: a run that is already claimed, to start with. */
async function work(
  deps: DriveLaneDeps,
  { laneKey, claimTerms, signal }: LaneWork,
  begun?: ClaimedRun,
): Promise<void> {
  const { store, holder, clock, wakes, probe } = deps;
  probe.reach('woken');
  const since = clock.now();
  let runs = 0;
  let next = begun;
  while (next !== undefined || !signal.aborted) {
    const claimed: Claim = next
      ? { kind: 'run', run: next }
      : await store.write(claimLane, { ...claimTerms(), framing: deps.framing(), laneKey });
    next = undefined;
    switch (claimed.kind) {
      case 'idle':
      case 'parked':
        deps.failures?.worked(laneKey);
        return;
      case 'full':
        return;
      case 'busy':
      case 'armed':
        return wakes.wake({ laneKey, class: claimed.class, delayMs: claimed.delayMs });
      case 'again':
        deps.start(claimed.effects);
        continue;
      case 'run':
        if (claimed.expired) {
          probe.reach('wait-expired');
          deps.start(claimed.expired);
        }
        break;
      default:
        return claimed satisfies never;
    }
    probe.reach('claimed');
    runs += 1;
    const mayKeepLane = () => !signal.aborted && runs < deps.maxRuns && clock.now() - since < deps.maxHoldMs;
    const claims = () => (mayKeepLane() ? claimTerms() : undefined);
    const left = await execute(deps, claimed.run, { signal, mayKeepLane, claims });
    // So that the next holder, which may be this process, needn't wait for a sweep.
    if (left?.kind === 'handed-over') return wakes.wake({ laneKey, class: claimed.run.class, delayMs: 0 });
    if (left?.kind === 'armed')
      return wakes.wake({ laneKey, class: claimed.run.class, delayMs: left.delayMs });
    // Its calls were answered while it was being parked: it is claimed again and continues.
    if (left?.kind === 'given-back') continue;
    if (left?.kind !== 'continuing') return;
    next = left.nextRun;
  }
  // Asked to stop between two runs: the lane was kept for the next run and is now released for the next holder.
  await store.write(releaseLane, { laneKey, holder });
}

/** A run that throws is left as stored: its next holder resumes it, which counts as an attempt. */
async function execute(
  deps: DriveLaneDeps,
  claimed: ClaimedRun,
  options: RunOptions,
): Promise<RunExit | undefined> {
  const { execute: run, log } = deps;
  const { laneKey, runId } = claimed;
  try {
    const left = await run(claimed, options);
    deps.failures?.worked(laneKey);
    return left;
  } catch (error) {
    deps.failures?.failed(laneKey, error);
    const isSuperseded = hasCode(error, 'stale_epoch');
    log.warn({ laneKey, runId, error }, isSuperseded ? 'run.superseded' : 'run.interrupted');
    if (!isSuperseded) await releaseWithRetry(deps, { ...claimed, error }, options.signal);
    return undefined;
  }
}

/** Pause between two attempts, ms, so that a momentary fault doesn't use up all of them. */
const pauseMs = 2_000;
const retryMs = 250;

/**
 * Releases the lease of a failed run as soon as the store responds again, so the next holder needn't wait for it to
 * expire. Once the lease has expired, the sweep finds the lane on its own.
 */
async function releaseWithRetry(
  { store, clock, wakes, log, leaseMs, redact }: DriveLaneDeps,
  { laneKey, runId, epoch, class: name, error: cause }: ClaimedRun & { readonly error: unknown },
  signal: AbortSignal,
): Promise<void> {
  const since = clock.now();
  const failed = { laneKey, runId, epoch, failure: redact(faultText(cause)) };
  do {
    try {
      await store.write(releaseFailedRun, { ...failed, pauseMs: Math.min(pauseMs, leaseMs) });
      return wakes.wake({ laneKey, class: name, delayMs: pauseMs });
    } catch (error) {
      if (hasCode(error, 'stale_epoch')) return;
      log.debug({ laneKey, runId, error }, 'run.not-released');
    }
    await clock.wait(retryMs, signal);
  } while (!signal.aborted && clock.now() - since < leaseMs);
}
