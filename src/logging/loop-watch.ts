/**
 * Detects when the event loop is blocked: meanwhile no one is answered, no lease is renewed and no socket is read.
 * Each hold is counted and reported with the runs of this moment; one that the start itself causes is no warning.
 * While the loop is idle its delays aren't measured, because that wakes it 50 times a second.
 */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { untilStep } from '#channel-kit/system-clock.ts';
import type { Log } from '#contracts/log.ts';

/** Watches how long pieces of work block the event loop. */
export interface LoopWatch {
  /** Starts counting holds; loading code at the start doesn't count. `runIds`: those active now. No effect after `stop`. */
  start(runIds?: () => readonly string[]): void;
  /** Measures delays from now on, until the loop is idle again; call it where work begins. */
  watchClosely(): void;
  /** Returns how late the loop was since the last call, in seconds. */
  delays(): LoopDelays;
  /** Returns how often the loop was blocked since the start. */
  held(): number;
  stop(): void;
}

export type LoopDelays = { readonly p50: number; readonly p99: number; readonly max: number };

/** Nothing may block the loop for longer, ms. */
const longestHoldMs = 50;
const resolutionMs = 20;
const lookEveryMs = 1_000;
/** Delays are measured until this many looks in a row have found the loop idle. */
const idleLooks = 3;
/** At most one log line in this time, ms, however often the loop is blocked. */
const tellEveryMs = 10_000;
/** For this long after the start, code is loaded and compiled, memory freed, and compiled code stored, ms. */
const warmUpMs = 90_000;
/** Most runs named in a report. */
const maxRunIds = 5;

/** Creates the watch. `now` is a monotonic clock, ms. */
export function createLoopWatch({
  log,
  now = () => performance.now(),
}: {
  readonly log: Log;
  readonly now?: () => number;
}): LoopWatch {
  const holds = createHolds({ log, now });
  const lately = monitorEventLoopDelay({ resolution: resolutionMs });
  let sinceAsked: DelayMonitor | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const closely = createCloseWatch({ monitor: lately, workedMs: loopTime(), holds });
  const look = () => {
    closely.look();
    timer = setTimeout(look, untilStep(lookEveryMs, performance.now())).unref();
  };
  return {
    held: holds.held,
    start: (runIds) => {
      if (isStopped) return;
      closely.begin();
      holds.start(runIds);
      timer ??= setTimeout(look, untilStep(lookEveryMs, performance.now())).unref();
    },
    watchClosely: () => {
      if (timer !== undefined && !isStopped) closely.begin();
    },
    delays: () => {
      const delays = secondsOf(sinceAsked ?? lately);
      if (sinceAsked) sinceAsked.reset();
      else {
        sinceAsked = monitorEventLoopDelay({ resolution: resolutionMs });
        sinceAsked.enable();
      }
      return delays;
    },
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
      lately.disable();
      sinceAsked?.disable();
    },
  };
}

type DelayMonitor = ReturnType<typeof monitorEventLoopDelay>;

/** Returns a function that returns for how long the loop has worked since its last call, ms. */
function loopTime(): () => number {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { active } = performance.eventLoopUtilization(now, before);
    before = now;
    return active;
  };
}

/**
 * Measures delays only while the loop is busy. Nothing can block it for longer than it works, so a second with little
 * work needs no measurement; the first busy second after that is measured only from `begin` on.
 */
export function createCloseWatch(deps: {
  readonly monitor: Pick<DelayMonitor, 'enable' | 'disable' | 'reset' | 'count' | 'max' | 'percentile'>;
  /** Returns for how long the loop has worked since the last call, ms. */
  workedMs(): number;
  readonly holds: Pick<Holds, 'look'>;
}) {
  const { monitor, workedMs, holds } = deps;
  let isMeasuring = false;
  let idle = 0;
  const begin = () => {
    idle = 0;
    if (!isMeasuring) monitor.enable();
    isMeasuring = true;
  };
  return {
    begin,
    look: () => {
      holds.look(secondsOf(monitor).max * 1000);
      monitor.reset();
      if (workedMs() > longestHoldMs) return begin();
      idle += 1;
      if (idle < idleLooks) return;
      monitor.disable();
      isMeasuring = false;
    },
  };
}

export interface Holds extends Pick<LoopWatch, 'held' | 'start'> {
  /** Judges the time since the last look. `lateMs` is the loop's longest delay. */
  look(lateMs: number): void;
}

/** Creates only the judgement, without a timer. */
export function createHolds({ log, now }: { readonly log: Log; readonly now: () => number }): Holds {
  let held = 0;
  let runIds: () => readonly string[] = () => [];
  let toldAt = Number.NEGATIVE_INFINITY;
  let unreported = 0;
  let warmAt = Number.NEGATIVE_INFINITY;
  return {
    held: () => held,
    start: (given = runIds) => {
      runIds = given;
      warmAt = now() + warmUpMs;
    },
    look: (lateMs) => {
      if (lateMs <= longestHoldMs) return;
      held += 1;
      const hold = { heldMs: Math.round(lateMs), runIds: runIds().slice(0, maxRunIds) };
      if (now() < warmAt) {
        log.debug(hold, 'loop.held');
        return;
      }
      unreported += 1;
      if (now() - toldAt < tellEveryMs) return;
      log.warn({ ...hold, times: unreported }, 'loop.held');
      toldAt = now();
      unreported = 0;
    },
  };
}

/** Converts the monitor's values, which are complete intervals including its own pause. */
function secondsOf(histogram: Pick<DelayMonitor, 'count' | 'max' | 'percentile'>): LoopDelays {
  if (histogram.count === 0) return { p50: 0, p99: 0, max: 0 };
  const late = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - resolutionMs / 1000);
  return {
    p50: late(histogram.percentile(50)),
    p99: late(histogram.percentile(99)),
    max: late(histogram.max),
  };
}
