import type { Clock } from '#contracts/clock.ts';
import { hasCode } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { Probe } from '#contracts/probe.ts';
import type { LaneDriver } from '../queue/lane-workers.ts';
import type { Wakes } from '../queue/wakes.ts';
import type { Notices } from '../replies/notices.ts';
import { newBoundary, wrapUntrusted } from '../replies/untrusted.ts';
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
export function createLaneDriver(deps: DriveLaneDeps): LaneDriver {
  const terms = () => ({
    holder: deps.holder,
    leaseMs: deps.leaseMs,
    framing: newFraming(),
    maxTries: deps.maxTries,
    gaveUpText: deps.notices.restartGaveUp,
  });
  const claim = (laneKey: string): Promise<Claim> =>
    deps.store.write(claimLane, { ...terms(), laneKey, newRunId: crypto.randomUUID() });
  return {
    drive: (laneKey, signal) => work(deps, { laneKey, claim, signal }),
    goOn: (run, signal) => work(deps, { laneKey: run.laneKey, claim, signal }, run),
    termsFor: (count) => ({
      ...terms(),
      newRunIds: Array.from({ length: count }, () => crypto.randomUUID()),
    }),
  };
}

type Working = {
  readonly laneKey: string;
  claim(laneKey: string): Promise<Claim>;
  readonly signal: AbortSignal;
};

/** `begun`: the run that was claimed already, to go on from. */
async function work(
  deps: DriveLaneDeps,
  { laneKey, claim, signal }: Working,
  begun?: ClaimedRun,
): Promise<void> {
  const { store, holder, clock, wakes, probe } = deps;
  probe.reach('woken');
  const since = clock.now();
  let runs = 0;
  let next = begun;
  while (next !== undefined || !signal.aborted) {
    const claimed: Claim = next ? { kind: 'run', run: next } : await claim(laneKey);
    next = undefined;
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
    probe.reach('claimed');
    runs += 1;
    const mayGoOn = () => !signal.aborted && runs < deps.maxRuns && clock.now() - since < deps.maxHoldMs;
    const left = await execute(deps, claimed.run, { signal, mayGoOn });
    if (left?.kind === 'armed')
      return wakes.wake({ laneKey, class: claimed.run.class, delayMs: left.delayMs });
    if (left?.kind !== 'going-on') return;
  }
  // Asked to stop between two runs: the lane was kept to go on, and is free for the next holder.
  await store.write(releaseLane, { laneKey, holder });
}

/** A run that throws is left as it stands: its next holder resumes it. */
async function execute(
  { execute: run, log }: DriveLaneDeps,
  claimed: ClaimedRun,
  options: Parameters<DriveLaneDeps['execute']>[1],
): Promise<LaneNext | undefined> {
  try {
    return await run(claimed, options);
  } catch (error) {
    const { laneKey, runId } = claimed;
    log.warn({ laneKey, runId, error }, hasCode(error, 'stale_epoch') ? 'run.superseded' : 'run.interrupted');
    return undefined;
  }
}

/** How what others said is framed for the model; the boundary is new for every take, so nobody can close it. */
export function newFraming(): Framing {
  const boundary = newBoundary();
  const frame = (about: string) => wrapUntrusted('', about, boundary).split('\n');
  const [contextIntro = ''] = frame('what was said and done here before, for context only');
  const [overflowIntro = ''] = frame('older messages, shortened because too many were waiting');
  return { contextIntro, overflowIntro, contextOutro: frame('').at(-1) ?? '' };
}
