/** Time as the process sees it. What decides about leases and due times is the database's clock instead. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms`, at most 24.8 days, or at once when the signal aborts (it never rejects). */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A timer that is set for longer fires at once. */
const longestTimerMs = 2 ** 31 - 1;

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
