import { waitInStep } from '#channel-kit/system-clock.ts';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { isClassBusy } from '../store/children/class-room.ts';
import { type ExpiryLimits, expireParts, readExpired } from '../store/delivery/expire-part.ts';
import { readHeadDue } from '../store/items/waiting-items.ts';
import { resumePaused } from '../store/lanes/leases.ts';
import {
  closeBundles,
  makeDue,
  readIsWorked,
  readNextDue,
  readSweep,
  type Sweep,
  type SweepPlace,
  sweepChild,
} from '../store/lanes/sweep.ts';
import { deleteOldBudgets, endBudgetAlerts } from '../store/money/budget.ts';
import type { RunOutOfBudget } from '../store/waits/budget-waits.ts';
import { bisectFailures } from './bisect-failures.ts';
import type { FailureStreaks } from './failure-streaks.ts';
import type { Wakes } from './wakes.ts';

export type SweeperDeps = {
  readonly store: Store;
  readonly wakes: Wakes;
  readonly clock: Clock;
  readonly log: Log;
  readonly contextLimit: number;
  /** Ages at which parts are given up that nothing delivers; absent: never. */
  readonly expireMs?: ExpiryLimits | undefined;
  /** How many lanes of each sub-agent class may run at once, across all processes; no others are woken. */
  readonly caps?: Readonly<Partial<Record<string, number>>> | undefined;
  /** Works a lane in a free slot of this process; returns false if there is none. */
  drive?(lane: Sweep['lanes'][number]): boolean;
  /** Says whether a run of the lane is running in this process. */
  worksOn?(laneKey: string): boolean;
  /** Frees everything that dead processes of this folder held, and notifies the other processes. */
  reapDead(): Promise<void>;
  deliver(conversationKey: string): void;
  fetch(inboxId: string): void;
  /** Dispatches the effects of a sub-agent's end. */
  start(effects: Effects): void;
  /** Counts what fails in a row; absent where nobody asks. */
  readonly failures?: Pick<FailureStreaks, 'failed' | 'worked'>;
  /** Does what earlier steps have left of a task. */
  settle(taskId: string): void;
  /** Writes the files that show a task. */
  show(taskId: string): void;
  /** Lets runs continue whose budgets have room again. */
  resume(runs: readonly RunOutOfBudget[]): void;
  /** Notifies people whose messages have waited for long; absent if nobody is notified. */
  notifyWaiting?(): Promise<void>;
  /** Called once per alarm: the lane's first item has waited this long, ms, while nothing works on the lane. */
  onAlarm(laneKey: string, waitedMs: number): void;
  onAlarmOver(laneKey: string): void;
  /** Returns the lanes whose alarm is open, whichever process raised it; absent if nobody is notified. */
  openAlarms?(): Promise<readonly string[]>;
};

/** Scans the store for due work once a second, or rests while there can't be any. */
export interface Sweeper {
  /** Scans now instead of at the next interval. */
  sweepNow(): void;
  stop(): Promise<void>;
}

const intervalMs = 1_000;
/** Pause between two pages, ms, when more is due than one sweep reads. */
const pageMs = 250;
/** Time in which a wake brings a due lane to a worker, ms; a lane that waits longer is taken here, without Redis. */
const wakeMs = 300;
/** A lane that has waited this long, ms, while nothing works on it raises an alarm. */
const alarmAfterMs = 10_000;
/**
 * How often other processes' alarms are adopted, ms: if those processes have ended, nothing else closes their alarms.
 */
const adoptMs = 60_000;
/** How long a background lane waits for a moment in which no other lane is due or running, ms. */
const maxBackgroundWaitMs = 60_000;
/** Longest rest, ms, though nothing has been written and nothing is due. */
const longestRestMs = 60_000;
/** This many stuck lanes show that something is wrong just as well as thousands would. */
const maxAlarms = 20;

/**
 * Performs step 11: finds everything that should be in progress but isn't. Sufficient for correctness on its own. After
 * a sweep that finds nothing it rests until something is written, by whatever process, something becomes due, or the
 * clock is set; it looks for that once a second.
 */
export function startSweeper(deps: SweeperDeps): Sweeper {
  const { clock } = deps;
  const stopping = new AbortController();
  const watch: Watch = { seen: new Map(), found: new Set(), alarmed: new Set(), adoptsAt: 0 };
  const upkeep = createUpkeep(deps);
  const rest = createRest(deps);
  let after: SweepPlace | undefined;
  let asked = new AbortController();
  let sweeps = 0;
  let sweptAt = Number.MAX_SAFE_INTEGER;
  const attempt = createAttempt(deps);
  const lookAtDue = async () => {
    const from = after;
    rest.end();
    // Taken before reading, so that a commit in the meantime causes another sweep.
    const version = deps.store.version?.();
    // After a page that can't be read comes the first page again; after one that was read, the next, even if it failed.
    after = undefined;
    const sweep = await deps.store.read(readSweep, { after: from, caps: deps.caps });
    after = sweep.next;
    dispatchDue(deps, { ...sweep, lanes: await holdBackground(deps, sweep) });
    // Also at the start, since the clock may have been set back while no process was running.
    if (sweep.now < sweptAt) await deps.store.write(resumePaused, {});
    sweptAt = sweep.now;
    sweeps += 1;
    await raiseAlarms(deps, sweep, watch);
    if (!isFruitful(sweep) && watch.alarmed.size === 0) await rest.begin(version, sweep.now);
  };
  const loop = async () => {
    while (!stopping.signal.aborted) {
      await attempt('dead processes', deps.reapDead);
      let isResting = false;
      await attempt('due rows', async () => {
        isResting = !asked.signal.aborted && rest.goesOn();
        if (!isResting) await lookAtDue();
      });
      // Not on the first sweep: items that waited while no process was running are about to be taken.
      if (!isResting && sweeps > 1 && deps.notifyWaiting)
        await attempt('waiting notices', deps.notifyWaiting);
      await attempt('upkeep', upkeep);
      asked = new AbortController();
      const signal = AbortSignal.any([stopping.signal, asked.signal]);
      await (after === undefined ? waitInStep(clock, intervalMs, signal) : clock.wait(pageMs, signal));
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

/** Returns a function that runs one part of the sweep: if it throws, the others still run. */
function createAttempt({ log, failures: streaks }: SweeperDeps) {
  const failures = new Map<string, number>();
  return async (part: string, run: () => Promise<void>): Promise<void> => {
    const failed = failures.get(part) ?? 0;
    try {
      await run();
      failures.delete(part);
      streaks?.worked(`sweep: ${part}`);
      if (failed > 0) log.info({ part, failures: failed }, 'sweep.recovered');
    } catch (error) {
      if (failed === 0) log.error({ part, error }, 'sweep.failed');
      failures.set(part, failed + 1);
      streaks?.failed(`sweep: ${part}`, error);
    }
  };
}

/** Decides for how long sweeps can't find anything. */
function createRest({ store, clock }: SweeperDeps) {
  const none = { version: undefined, until: 0 };
  let rest: { readonly version: number | undefined; readonly until: number } = none;
  let lookedAt = 0;
  return {
    /** Begins a rest after a sweep that found nothing; `version` is the store's before that sweep. */
    begin: async (version: number | undefined, now: number) => {
      if (version === undefined) return;
      const dueAt = await store.read(readNextDue, {});
      rest = { version, until: clock.now() + Math.min(longestRestMs, (dueAt ?? Infinity) - now) };
    },
    /** False also when the clock has been set back, since rows may then be due that were not. */
    goesOn: (): boolean => {
      const now = clock.now();
      const wasSetBack = now < lookedAt;
      lookedAt = now;
      return !wasSetBack && now < rest.until && store.version?.() === rest.version;
    },
    end: () => {
      rest = none;
    },
  };
}

function isFruitful({ now: _, next, ...found }: Sweep): boolean {
  return next !== undefined || Object.values(found).some((rows) => rows.length > 0);
}

type Watch = {
  /**
   * Since when each lane has been found waiting in every sweep, by this process's own clock. Time that a lane waited
   * while no process was running doesn't count.
   */
  readonly seen: Map<string, { readonly since: number; readonly waitingSince: number }>;
  /** Lanes found since the sweep last reached the end of all pages. */
  readonly found: Set<string>;
  /** Lanes whose alarm is open. */
  readonly alarmed: Set<string>;
  /** When the alarms of other processes are read next. */
  adoptsAt: number;
};

/** Returns the due lanes; background lanes are left out while others are due or running, for a minute at most. */
async function holdBackground({ store }: SweeperDeps, { lanes, now }: Sweep): Promise<Sweep['lanes']> {
  const canWait = ({ class: name, waitingSince }: Sweep['lanes'][number]) =>
    name === 'background' && now - waitingSince < maxBackgroundWaitMs;
  if (!lanes.some(canWait)) return lanes;
  const isBusy = lanes.some((lane) => lane.class !== 'background') || (await store.read(readIsWorked, {}));
  return isBusy ? lanes.filter((lane) => !canWait(lane)) : lanes;
}

function dispatchDue(deps: SweeperDeps, sweep: Sweep): void {
  const { store, wakes, log, contextLimit } = deps;
  for (const lane of sweep.lanes) {
    // The clock was set forward or this process was paused: the lease has expired, but its renewal is due.
    if (lane.isAbandoned && deps.worksOn?.(lane.laneKey)) continue;
    const isLate = lane.isAbandoned || sweep.now - lane.waitingSince > wakeMs;
    if (!(isLate && deps.drive?.(lane))) wakes.wake({ ...lane, delayMs: 0 });
  }
  for (const conversationKey of sweep.conversations) deps.deliver(conversationKey);
  for (const inboxId of sweep.fetches) deps.fetch(inboxId);
  for (const childId of sweep.children)
    store
      .write(sweepChild, { childId })
      .then(deps.start)
      .catch((error: unknown) => log.warn({ childId, error }, 'sweep.child-failed'));
  for (const taskId of sweep.tasks) deps.settle(taskId);
  for (const taskId of sweep.unshownTasks) deps.show(taskId);
  deps.resume(sweep.withRoom);
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
    bisectFailures(sweep.expiredBundles, close, notClosed).catch((error: unknown) =>
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
    // If another row is first now, the lane has been worked on.
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
  // Only after the last page is it known which lanes no longer wait.
  if (sweep.next !== undefined) return;
  await adoptAlarms(deps, watch);
  forgetOthers(deps, watch);
}

/** Returns the lanes that this cycle hasn't found before and records them: only a lane's first row counts. */
function firstsIn({ lanes }: Sweep, found: Set<string>): Sweep['lanes'] {
  return lanes.filter((lane) => {
    // Nobody waits for background lanes, and few of them run at once.
    if (lane.class === 'background' || found.has(lane.laneKey)) return false;
    found.add(lane.laneKey);
    return true;
  });
}

/** Adopts open alarms: an alarm ends when any process has read all pages without finding its lane. */
async function adoptAlarms({ clock, openAlarms }: SweeperDeps, watch: Watch): Promise<void> {
  if (clock.now() < watch.adoptsAt) return;
  for (const laneKey of (await openAlarms?.()) ?? []) watch.alarmed.add(laneKey);
  watch.adoptsAt = clock.now() + adoptMs;
}

/** Says whether a due message still waits for the attachments of the one before it. */
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

/** First upkeep, ms after the start, so that it doesn't slow the start down. */
const firstMs = 300_000;
const upkeepIntervalMs = 3_600_000;
/** Rows per commit, so that work that people wait for can come between. */
const atOnce = 500;

/**
 * Creates the upkeep, which deletes rows that are no longer needed and closes alerts that are over. Call the returned
 * function with every sweep; it acts once an hour.
 */
function createUpkeep(deps: Pick<SweeperDeps, 'store' | 'clock' | 'log' | 'expireMs'>): () => Promise<void> {
  const { store, clock, log, expireMs: limits } = deps;
  let nextAt = clock.now() + firstMs;
  return async () => {
    if (clock.now() < nextAt) return;
    await store.write(endBudgetAlerts, {});
    for (const conversationKey of limits ? await store.read(readExpired, limits) : [])
      if (limits) await store.write(expireParts, { conversationKey, limits });
    const deleted = await store.write(deleteOldBudgets, { limit: atOnce });
    if (deleted > 0) log.debug({ deleted }, 'budgets.deleted');
    if (deleted < atOnce) nextAt = clock.now() + upkeepIntervalMs;
  };
}
