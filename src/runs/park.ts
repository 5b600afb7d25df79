import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { Probe } from '#contracts/probe.ts';
import type { TimelineEvent } from '#contracts/timeline.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { type ParkOutcome, parkRun } from '../store/lanes/park-run.ts';
import type { LiveView } from './live-view.ts';

export type ParkDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  publish(laneKey: string, event: TimelineEvent): void;
  start(effects: Effects): void;
};

/** Why a call waits, and how long at most, ms. */
export type WaitingCall = { readonly reason: string; readonly waitMs?: number };

export type Waiting = {
  /** In source order. */
  readonly calls: readonly WaitingCall[];
  /** When this attempt at the run began. */
  readonly startedAt: number;
  readonly live: LiveView;
};

/** A person who has not answered within a week is asked again by the model, or not at all. */
const usualWaitMs = 7 * 86_400_000;

/** Lets go of a run whose calls wait for something outside: slot, lease, typing and clock end here. */
export async function park(
  { store, clock, log, probe, publish, start }: ParkDeps,
  run: ClaimedRun,
  { calls, startedAt, live }: Waiting,
): Promise<ParkOutcome> {
  const { runId, laneKey, epoch } = run;
  // The shown message is recorded before another process continues with it.
  await live.finishPreview();
  const reason = [...new Set(calls.map((call) => call.reason))].join(', ');
  // The claim that ends one wait ends them all.
  const waitMs = Math.min(...calls.map((call) => call.waitMs ?? usualWaitMs));
  const workedMs = run.workedMs + Math.max(0, clock.now() - startedAt);
  const parking = { runId, laneKey, epoch, reason, workedMs, waitMs };
  const { kind, effects } = await store.write(parkRun, parking);
  start(effects);
  log.info({ runId, laneKey, reason, workedMs, outcome: kind }, 'run.parked');
  if (kind === 'parked') publish(laneKey, { kind: 'parked', runId, reason });
  probe.reach('parked');
  return { kind };
}
