import { EventEmitter } from 'node:events';
import { waitInStep } from '#channel-kit/system-clock.ts';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { Store } from '../store/base/command.ts';
import { renewLeases } from '../store/lanes/leases.ts';
import type { RunFence } from '../store/rows/run.ts';

/** Reasons that a run's row may give; any other counts as a stop. */
const ordered = ['revoked', 'interrupt', 'reset'] as const;

/**
 * Why a run stops before its natural end. `revoked`: the owner has shut its person out. `handover`: another worker will
 * continue the same run.
 */
export type StopReason = 'stop' | 'revoked' | 'interrupt' | 'reset' | 'lost' | 'handover';

export type ActiveRun = RunFence & { stop(reason: StopReason): void };

/** The runs of this process. It renews their leases and passes cancels on to them. */
export interface ActiveRuns {
  /** Adds the run and stops an earlier attempt at it, which was overtaken after its lease expired. */
  add(run: ActiveRun): void;
  remove(run: ActiveRun): void;
  /** Returns false if the run isn't running here. */
  cancel(runId: string, reason: string): boolean;
  /** Reads the run's cancel flag now rather than at its next renewal, if the run is running here. */
  look(runId: string): void;
  /** Calls the listener when a message may have arrived in the lane, until the returned function is called. */
  onArrival(laneKey: string, listener: () => void): () => void;
  /** Calls the lane's listeners. */
  arrived(laneKey: string): void;
  /** Says whether a run of the lane is running here, even if its lease has just expired. */
  worksOn(laneKey: string): boolean;
  ids(): readonly string[];
  /** Ends the renewals. The caller must have ended the runs. */
  close(): Promise<void>;
}

/** Creates an empty list of this process's runs; it renews their leases. */
export function createActiveRuns(deps: {
  readonly store: Store;
  readonly holder: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly leaseMs: number;
  readonly renewMs: number;
}): ActiveRuns {
  const { store, holder, clock, log, leaseMs, renewMs } = deps;
  const runs = new Map<string, ActiveRun>();
  /** Names its events by lane, all of which begin with an agent's name: none is `error`. */
  const arrivals = new EventEmitter();
  const closing = new AbortController();
  /** When the leases were last known to be held here, by this process's own clock. */
  let renewedAt = clock.now();

  const renew = async () => {
    const asked = clock.now();
    const asking = [...runs.values()];
    const held = asking.map(({ laneKey, epoch, runId }) => ({ laneKey, epoch, runId }));
    const { lost, cancels } = await store.write(renewLeases, { holder, leaseMs, runs: held });
    renewedAt = asked;
    // Only the runs that were renewed: meanwhile a run may have been claimed again under a newer epoch.
    for (const run of asking) if (lost.includes(run.runId)) run.stop('lost');
    for (const { runId, reason } of cancels) cancel(runId, reason);
  };

  const cancel = (runId: string, reason: string) => {
    const run = runs.get(runId);
    run?.stop(ordered.find((known) => known === reason) ?? 'stop');
    return run !== undefined;
  };

  const attempt = () =>
    renew().catch((error: unknown) => {
      log.warn({ error, runs: runs.size }, 'lease.renewal-failed');
      // After its lease has expired a run may have a successor, and further writes would be rejected.
      if (clock.now() - renewedAt > leaseMs) for (const run of runs.values()) run.stop('lost');
    });
  const renewing = repeat({ everyMs: renewMs, clock, signal: closing.signal }, async () => {
    if (runs.size > 0) await attempt();
    else renewedAt = clock.now();
  });

  return {
    add: (run) => {
      if (runs.size === 0) renewedAt = clock.now();
      runs.get(run.runId)?.stop('lost');
      runs.set(run.runId, run);
    },
    remove: (run) => {
      if (runs.get(run.runId) === run) runs.delete(run.runId);
    },
    cancel,
    look: (runId) => {
      if (runs.has(runId)) void attempt();
    },
    onArrival: (laneKey, listener) => listen(arrivals, laneKey, listener),
    arrived: (laneKey) => void arrivals.emit(laneKey),
    worksOn: (laneKey) => [...runs.values()].some((run) => run.laneKey === laneKey),
    ids: () => [...runs.keys()],
    close: () => {
      closing.abort();
      return renewing;
    },
  };
}

function listen(emitter: EventEmitter, event: string, listener: () => void): () => void {
  emitter.on(event, listener);
  return () => void emitter.off(event, listener);
}

type Rhythm = { readonly everyMs: number; readonly clock: Clock; readonly signal: AbortSignal };

async function repeat({ everyMs, clock, signal }: Rhythm, work: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await waitInStep(clock, everyMs, signal);
    await work();
  }
}
