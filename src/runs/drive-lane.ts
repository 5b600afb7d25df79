import { randomBytes } from 'node:crypto';
import type { Clock } from '#contracts/clock.ts';
import { hasCode } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { Probe } from '#contracts/probe.ts';
import type { DriveLane } from '../queue/lane-workers.ts';
import type { Wakes } from '../queue/wakes.ts';
import type { Notices } from '../replies/notices.ts';
import { boundaryFrom, wrapUntrusted } from '../replies/untrusted.ts';
import type { Store } from '../store/command.ts';
import type { Effects } from '../store/intake/proposal.ts';
import { type Claim, type ClaimedRun, claimLane } from '../store/lanes/claim-lane.ts';
import type { LaneNext } from '../store/lanes/close-run.ts';
import { releaseLane } from '../store/lanes/leases.ts';
import type { Framing } from '../store/lanes/take-rows.ts';

export type DriveLaneDeps = {
  readonly store: Store;
  readonly holder: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  readonly wakes: Wakes;
  readonly notices: Notices;
  readonly leaseMs: number;
  readonly maxTries: number;
  /** A lane that always has something waiting gives way after this many runs or this long, ms. */
  readonly maxRuns: number;
  readonly maxHoldMs: number;
  start(effects: Effects): void;
  /** Executes one run; undefined when it was handed over or lost. */
  execute(
    run: ClaimedRun,
    options: { readonly signal: AbortSignal; mayGoOn(): boolean },
  ): Promise<LaneNext | undefined>;
};

/** Steps 4 to 7 in a row: claims the lane and works it until it rests, is armed, or gives way. */
export function createLaneDriver(deps: DriveLaneDeps): DriveLane {
  const { store, holder, clock, log, wakes } = deps;

  const claim = (laneKey: string): Promise<Claim> =>
    store.write(claimLane, {
      laneKey,
      holder,
      leaseMs: deps.leaseMs,
      newRunId: crypto.randomUUID(),
      framing: newFraming(),
      maxTries: deps.maxTries,
      gaveUpText: deps.notices.restartGaveUp,
    });

  return async (laneKey, signal) => {
    deps.probe.reach('woken');
    const since = clock.now();
    let runs = 0;
    while (!signal.aborted) {
      const claimed = await claim(laneKey);
      switch (claimed.kind) {
        case 'resting':
          return;
        case 'busy':
        case 'armed':
          return wakes.wake({ laneKey, class: claimed.class, delayMs: claimed.delayMs });
        case 'again':
          deps.start(claimed.effects);
          continue;
        case 'run':
          break;
        default:
          return claimed satisfies never;
      }
      deps.probe.reach('claimed');
      runs += 1;
      const mayGoOn = () => !signal.aborted && runs < deps.maxRuns && clock.now() - since < deps.maxHoldMs;
      const next = await deps.execute(claimed.run, { signal, mayGoOn }).catch((error: unknown) => {
        const isStale = hasCode(error, 'stale_epoch');
        log.warn(
          { laneKey, runId: claimed.run.runId, error },
          isStale ? 'run.superseded' : 'run.interrupted',
        );
        return undefined;
      });
      if (next?.kind === 'armed')
        return wakes.wake({ laneKey, class: claimed.run.class, delayMs: next.delayMs });
      if (next?.kind !== 'going-on') return;
    }
    // Asked to stop between two runs: the lane was kept to go on, and is free for the next holder.
    await store.write(releaseLane, { laneKey, holder });
  };
}

/** How what others said is framed for the model; the boundary is new for every take, so nobody can close it. */
export function newFraming(): Framing {
  const boundary = boundaryFrom(randomBytes(16));
  const frame = (about: string) => wrapUntrusted('', about, boundary).split('\n');
  const [contextIntro = ''] = frame('what was said and done here before, for context only');
  const [overflowIntro = ''] = frame('older messages, shortened because too many were waiting');
  return { contextIntro, overflowIntro, contextOutro: frame('').at(-1) ?? '' };
}
