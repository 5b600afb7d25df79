import type { Clock } from '#contracts/clock.ts';

/** A clock that only moves when it is advanced. */
export type ManualClock = Clock & {
  advance(ms: number): void;
  /** Returns how many waits are open. */
  waiting(): number;
};

export function manualClock(start = 1_000_000): ManualClock {
  let now = start;
  const waits = new Set<{ readonly at: number; readonly done: () => void }>();
  return {
    now: () => now,
    waiting: () => waits.size,
    wait: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const entry = {
          at: now + ms,
          done: () => {
            waits.delete(entry);
            signal?.removeEventListener('abort', entry.done);
            resolve();
          },
        };
        waits.add(entry);
        signal?.addEventListener('abort', entry.done, { once: true });
      }),
    advance: (ms) => {
      now += ms;
      for (const entry of [...waits]) if (entry.at <= now) entry.done();
    },
  };
}
