import type { Clock } from '#contracts/clock.ts';

/** Longest delay that `setTimeout` takes, in ms; a longer one would fire at once. */
const longestTimerMs = 2 ** 31 - 1;

/** The clock of this machine. Waits end early, without an error, when their signal aborts. */
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
