import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { isClassBusy } from '../store/children/class-room.ts';
import { readHeadDue } from '../store/items/waiting-rows.ts';
import { resumePaused } from '../store/lanes/leases.ts';
import { closeBundles, makeDue, readSweep, type Sweep, type SweepPlace } from '../store/lanes/sweep.ts';
import { tendChild } from '../store/lanes/tend-child.ts';
import { resumeWithRoom } from '../store/waits/budget-waits.ts';
import { actApart } from './act-apart.ts';
import { createUpkeep } from './upkeep.ts';
import type { Wakes } from './wakes.ts';

export type SweeperDeps = {
  readonly store: Store;
  readonly wakes: Wakes;
  readonly clock: Clock;
  readonly log: Log;
  readonly contextLimit: number;
  /** Lanes of a sub-agents' class that run at once, over all processes: nobody is woken beyond it. */
  readonly caps?: Readonly<Partial<Record<string, number>>> | undefined;
  /** Looks at a lane in a free slot of this process; false when there is none. */
  drive?(lane: Sweep['lanes'][number]): boolean;
  /** Whether this process works on a run of the lane. */
  worksOn?(laneKey: string): boolean;
  /** Frees what dead processes of this folder held, and tells the others that it is free. */
  reapDead(): Promise<void>;
  deliver(conversationKey: string): void;
  fetch(inboxId: string): void;
  /** Dispatches what a sub-agent's end makes due. */
  start(effects: Effects): void;
  /** Tells people whose messages wait for long; absent where nobody is told. */
  notifyWaiting?(): Promise<void>;
  /** Something has waited in a lane for so long and nobody works on it; said once, until it is over. */
  onAlarm(laneKey: string, waitedMs: number): void;
  onAlarmOver(laneKey: string): void;
  /** Lanes whose alarm is open, whichever process has raised it; absent where nobody is told. */
  openAlarms?(): Promise<readonly string[]>;
};

/** Scans the store for due work once a second. */
export interface Sweeper {
  /** Looks now and not at its next time. */
  sweepNow(): void;
  stop(): Promise<void>;
}

const intervalMs = 1_000;
/** Between two pages of what waits, when it is more than one sweep reads. */
const pageMs = 250;
/** By then a wake has brought a due lane to a worker; one that still waits needs no Redis to be taken. */
const wakeMs = 300;
/** A lane that has waited this long with nobody working on it is an alarm. */
const alarmAfterMs = 10_000;
/** How often alarms of other processes are taken over: theirs may have ended, and nobody else ends what they raised. */
const adoptMs = 60_000;
/** So many lanes at once say that something is wrong as well as thousands would. */
const maxAlarms = 20;

/** Step 11: finds everything that should be moving and is not. Enough for correctness on its own. */
export function startSweeper(deps: SweeperDeps): Sweeper {
  const { clock, log } = deps;
  const stopping = new AbortController();
  const watch: Watch = { seen: new Map(), found: new Set(), alarmed: new Set(), adoptsAt: 0 };
  const upkeep = createUpkeep(deps);
  let after: SweepPlace | undefined;
  let asked = new AbortController();
  let sweeps = 0;
  let sweptAt = Number.MAX_SAFE_INTEGER;
  const failures = new Map<string, number>();
  /** Whatever a part of the sweep throws keeps no other part from its turn. */
  const attempt = async (part: string, run: () => Promise<void>): Promise<void> => {
    const failed = failures.get(part) ?? 0;
    try {
      await run();
      failures.delete(part);
      if (failed > 0) log.info({ part, failures: failed }, 'sweep.recovered');
    } catch (error) {
      if (failed === 0) log.error({ part, error }, 'sweep.failed');
      failures.set(part, failed + 1);
    }
  };
  const lookAtDue = async () => {
    const from = after;
    // A page that can't be read is followed by the first; one that was read by the next, whatever fails on it.
    after = undefined;
    const sweep = await deps.store.read(readSweep, { after: from, caps: deps.caps });
    after = sweep.next;
    dispatchDue(deps, sweep);
    // At the start too: the clock may have been set back while no process ran.
    if (sweep.now < sweptAt) await deps.store.write(resumePaused, {});
    sweptAt = sweep.now;
    sweeps += 1;
    await raiseAlarms(deps, sweep, watch);
  };
  const loop = async () => {
    while (!stopping.signal.aborted) {
      await attempt('dead processes', deps.reapDead);
      await attempt('due rows', lookAtDue);
      // Items that waited while no process ran are about to be taken.
      if (sweeps > 1 && deps.notifyWaiting) await attempt('waiting notices', deps.notifyWaiting);
      await attempt('upkeep', upkeep);
      asked = new AbortController();
      await clock.wait(
        after === undefined ? intervalMs : pageMs,
        AbortSignal.any([stopping.signal, asked.signal]),
      );
      if (asked.signal.aborted) after = undefined;
    }
  };
  const running = loop();
  return {
    sweepNow: () => asked.abort(),
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

type Watch = {
  /**
   * Since when each lane was found waiting, sweep after sweep, by this process's own clock: what waited
   * while no process was there is this one's business from its start on.
   */
  readonly seen: Map<string, { readonly since: number; readonly waitingSince: number }>;
  /** Found since the sweep last came to the end of what waits. */
  readonly found: Set<string>;
  /** Lanes whose alarm is open. */
  readonly alarmed: Set<string>;
  /** When the alarms of other processes are read next. */
  adoptsAt: number;
};

function dispatchDue(deps: SweeperDeps, sweep: Sweep): void {
  const { store, wakes, log, contextLimit } = deps;
  for (const lane of sweep.lanes) {
    // The clock was set forward, or this process stood still: the lease is over, and its renewal is due.
    if (lane.isAbandoned && deps.worksOn?.(lane.laneKey)) continue;
    const isLate = lane.isAbandoned || sweep.now - lane.waitingSince > wakeMs;
    if (!(isLate && deps.drive?.(lane))) wakes.wake({ ...lane, delayMs: 0 });
  }
  for (const conversationKey of sweep.conversations) deps.deliver(conversationKey);
  for (const inboxId of sweep.fetches) deps.fetch(inboxId);
  for (const childId of sweep.children)
    store
      .write(tendChild, { childId })
      .then(deps.start)
      .catch((error: unknown) => log.warn({ childId, error }, 'sweep.child-failed'));
  for (const run of sweep.withRoom)
    store
      .write(resumeWithRoom, run)
      .then(deps.start)
      .catch((error: unknown) => log.warn({ ...run, error }, 'sweep.run-not-resumed'));
  if (sweep.ahead.length > 0) {
    log.warn({ items: sweep.ahead.length }, 'sweep.clock-returned');
    store
      .write(makeDue, { ids: sweep.ahead })
      .catch((error: unknown) => log.warn({ error }, 'sweep.items-ahead-failed'));
  }
  if (sweep.expiredBundles.length > 0) {
    const close = (laneKeys: readonly string[]) =>
      store.write(closeBundles, { laneKeys, limit: contextLimit });
    const notClosed = (laneKey: string, error: unknown) =>
      log.warn({ laneKey, error }, 'sweep.bundle-failed');
    actApart(sweep.expiredBundles, close, notClosed).catch((error: unknown) =>
      log.warn({ error }, 'sweep.bundles-failed'),
    );
  }
}

async function raiseAlarms(deps: SweeperDeps, sweep: Sweep, watch: Watch): Promise<void> {
  const { log, clock, onAlarm } = deps;
  const { seen, found, alarmed } = watch;
  const now = clock.now();
  for (const lane of firstsIn(sweep, found)) {
    const { laneKey, waitingSince } = lane;
    const known = seen.get(laneKey);
    // Another row is first now: somebody has worked on the lane.
    const since = known?.waitingSince === waitingSince ? known.since : now;
    seen.set(laneKey, { since, waitingSince });
    const waitedMs = now - since;
    if (waitedMs <= alarmAfterMs || alarmed.has(laneKey) || alarmed.size >= maxAlarms) continue;
    if (await isBlockedByHead(deps, sweep, lane)) continue;
    if (await deps.store.read(isClassBusy, lane)) continue;
    alarmed.add(laneKey);
    log.error({ laneKey, waitedMs }, 'lane.stuck');
    onAlarm(laneKey, waitedMs);
  }
  // Only at the end of all pages is it known which lanes wait no more.
  if (sweep.next !== undefined) return;
  await adoptAlarms(deps, watch);
  forgetOthers(deps, watch);
}

/** The lanes that this cycle has not found before, all noted as found: its first row is the one that counts. */
function firstsIn({ lanes }: Sweep, found: Set<string>): Sweep['lanes'] {
  return lanes.filter((lane) => {
    // Nobody waits for upkeep, and few of its lanes work at once.
    if (lane.class === 'background' || found.has(lane.laneKey)) return false;
    found.add(lane.laneKey);
    return true;
  });
}

/** An alarm ends when a process that has read all pages doesn't find its lane, not with the process that raised it. */
async function adoptAlarms({ clock, openAlarms }: SweeperDeps, watch: Watch): Promise<void> {
  if (clock.now() < watch.adoptsAt) return;
  for (const laneKey of (await openAlarms?.()) ?? []) watch.alarmed.add(laneKey);
  watch.adoptsAt = clock.now() + adoptMs;
}

/** A due message still waits for the attachments of the one before it, until this time. */
async function isBlockedByHead(
  { store }: SweeperDeps,
  { now }: Sweep,
  { laneKey, isAbandoned }: Sweep['lanes'][number],
): Promise<boolean> {
  if (isAbandoned) return false;
  const headDueAt = await store.read(readHeadDue, { laneKey });
  return headDueAt !== undefined && headDueAt > now;
}

function forgetOthers({ onAlarmOver }: SweeperDeps, { seen, found, alarmed }: Watch): void {
  for (const laneKey of seen.keys()) if (!found.has(laneKey)) seen.delete(laneKey);
  for (const laneKey of alarmed) {
    if (found.has(laneKey)) continue;
    alarmed.delete(laneKey);
    onAlarmOver(laneKey);
  }
  found.clear();
}
