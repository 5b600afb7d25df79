/**
 * Detects when the event loop is blocked: meanwhile no one is answered, no lease is renewed and no socket is read.
 * Sections name what was running; a hold that no section explains is `unknown`. Each hold is counted; one that the start
 * itself causes is no warning.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Log } from '#contracts/log.ts';
import type { Sections } from '#contracts/section.ts';

/** Watches how long pieces of work block the event loop. */
export interface LoopWatch extends Sections {
  /** Starts counting holds; loading code at the start doesn't count. Has no effect after `stop`. */
  start(): void;
  /** Returns how late the loop was since the last call, in seconds. */
  delays(): LoopDelays;
  /** Returns how often the loop was blocked since the start, by section. */
  held(): ReadonlyMap<string, number>;
  stop(): void;
}

export type LoopDelays = { readonly p50: number; readonly p99: number; readonly max: number };

/** Nothing may block the loop for longer, ms. */
const longestHoldMs = 50;
const resolutionMs = 20;
const lookEveryMs = 1_000;
/** At most one log line in this time, ms, however often the loop is blocked. */
const tellEveryMs = 10_000;
/** For this long after the start, code is loaded and compiled, ms. */
const warmUpMs = 60_000;
/** Work put off until the process is idle, whenever that is (`src/cli/start.ts`). */
const putOff: ReadonlySet<string> = new Set(['collection at rest', 'compile cache']);

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
  const look = () => {
    holds.look(secondsOf(lately).max * 1000);
    lately.reset();
  };
  return {
    run: holds.run,
    held: holds.held,
    start: () => {
      if (isStopped) return;
      lately.enable();
      holds.start();
      timer ??= setInterval(look, lookEveryMs).unref();
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
      clearInterval(timer);
      lately.disable();
      sinceAsked?.disable();
    },
  };
}

type DelayMonitor = ReturnType<typeof monitorEventLoopDelay>;

export interface Holds extends Sections {
  held(): ReadonlyMap<string, number>;
  /** Begins the warm-up. */
  start(): void;
  /** Judges the time since the last look. `lateMs` is the loop's longest delay. */
  look(lateMs: number): void;
}

/** Creates only the judgement, without a timer. */
export function createHolds({ log, now }: { readonly log: Log; readonly now: () => number }): Holds {
  const held = new Map<string, number>();
  let longest = { name: 'unknown', ms: 0 };
  /** Time of nested sections, which isn't the running section's own. */
  let withinMs = 0;
  let toldAt = Number.NEGATIVE_INFINITY;
  let untold = 0;
  let warmAt = Number.NEGATIVE_INFINITY;
  return {
    held: () => held,
    start: () => {
      warmAt = now() + warmUpMs;
    },
    run: (name, work) => {
      const startedAt = now();
      const outerNestedMs = withinMs;
      withinMs = 0;
      try {
        return work();
      } finally {
        const tookMs = now() - startedAt;
        const ms = tookMs - withinMs;
        if (ms > longest.ms) longest = { name, ms };
        withinMs = outerNestedMs + tookMs;
      }
    },
    look: (lateMs) => {
      const { name, ms } = longest;
      longest = { name: 'unknown', ms: 0 };
      const holdMs = Math.max(lateMs, ms);
      if (holdMs <= longestHoldMs) return;
      // A section that took less than half of the hold doesn't explain it.
      const section = ms * 2 >= holdMs ? name : 'unknown';
      held.set(section, (held.get(section) ?? 0) + 1);
      if (now() < warmAt || putOff.has(section)) {
        log.debug({ section, heldMs: Math.round(holdMs) }, 'loop.held');
        return;
      }
      untold += 1;
      if (now() - toldAt < tellEveryMs) return;
      log.warn({ section, heldMs: Math.round(holdMs), times: untold }, 'loop.held');
      toldAt = now();
      untold = 0;
    },
  };
}

/** Converts the monitor's values, which are complete intervals including its own pause. */
function secondsOf(histogram: DelayMonitor): LoopDelays {
  if (histogram.count === 0) return { p50: 0, p99: 0, max: 0 };
  const late = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - resolutionMs / 1000);
  return {
    p50: late(histogram.percentile(50)),
    p99: late(histogram.percentile(99)),
    max: late(histogram.max),
  };
}
