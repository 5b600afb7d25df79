import type { Clock } from '#contracts/clock.ts';

/** Time that passes only when a test lets it, so that minutes cost nothing and every wait can be counted. */
export interface SteppedClock extends Clock {
  /** Every requested wait, in ms, oldest first. */
  readonly waits: readonly number[];
  /** Lets time pass. The waits end in order, and the work that each one triggers is done before the next one ends. */
  advance(ms: number): Promise<void>;
  /** Lets time pass wait by wait until the probe holds, with a moment in between for work outside this thread. */
  until(probe: () => boolean): Promise<void>;
}

/** Usually enough for a call to a local server; if it isn't, time only passes a little sooner. */
const momentMs = 8;

type Sleeper = { readonly at: number; readonly wake: () => void };

/** `settled`: resolves once the work triggered by a wait is done, for work that leaves this thread. */
export function createSteppedClock(settled: () => Promise<void> = turns): SteppedClock {
  const waits: number[] = [];
  const sleepers = new Set<Sleeper>();
  let now = Date.UTC(2026, 0, 1);
  const next = () => [...sleepers].sort((one, other) => one.at - other.at)[0];
  return {
    waits,
    now: () => now,
    wait: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        waits.push(ms);
        const wake = () => {
          sleepers.delete(sleeper);
          signal?.removeEventListener('abort', wake);
          resolve();
        };
        const sleeper: Sleeper = { at: now + ms, wake };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', wake, { once: true });
      }),
    advance: async (ms) => {
      const until = now + ms;
      await settled();
      for (let sleeper = next(); sleeper && sleeper.at <= until; sleeper = next()) {
        now = Math.max(now, sleeper.at);
        sleeper.wake();
        await settled();
      }
      now = until;
    },
    until: async (probe) => {
      while (!probe()) {
        await new Promise((resolve) => setTimeout(resolve, momentMs));
        const sleeper = probe() ? undefined : next();
        if (!sleeper) continue;
        now = Math.max(now, sleeper.at);
        sleeper.wake();
      }
    },
  };
}

/** Lets everything run that depends on promises alone. */
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
