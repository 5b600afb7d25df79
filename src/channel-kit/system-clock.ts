import type { Clock } from '#contracts/clock.ts';

/** Longest delay that `setTimeout` accepts, ms; a longer one would fire immediately. */
const longestTimerMs = 2 ** 31 - 1;

/** A timer that fires up to this much early, ms, doesn't repeat at once. */
const earlyMs = 2;

/** This machine's clock. Waits end early, without an error, when their signal aborts. */
export const systemClock: Clock = {
  now: () => Date.now(),
  wait: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(ms, longestTimerMs));
      signal?.addEventListener('abort', done, { once: true });
    }),
  untilStep: (everyMs) => untilStep(everyMs, performance.now()),
};

/** Returns the time until the next multiple of `everyMs`, ms. */
export function untilStep(everyMs: number, sinceStartMs: number): number {
  const left = everyMs - (sinceStartMs % everyMs);
  return Math.ceil(left < earlyMs ? left + everyMs : left);
}

/** Waits for the next turn of what this process repeats every so often; a clock without steps waits for all of it. */
export function waitInStep(clock: Clock, everyMs: number, signal?: AbortSignal): Promise<void> {
  return clock.wait(clock.untilStep?.(everyMs) ?? everyMs, signal);
}
