import type { Clock } from '#contracts/clock.ts';

/** Longest delay that `setTimeout` accepts, ms; a longer one would fire immediately. */
const longestTimerMs = 2 ** 31 - 1;

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
};
