/**
 * The calls of this process that wait to ask one provider again. A call that succeeds shows that the
 * provider is back and wakes those that have waited longest, a few at a time and spread over a moment:
 * each of them that succeeds wakes the next few. So 200 waiters are no stampede, and a provider that is
 * still weak is not asked by all of them. Other processes are not told: their own calls wake their own.
 */
import type { Clock } from '#contracts/clock.ts';

export interface ProviderWaits {
  /**
   * Resolves with `over` when the time is over or the signal aborts, with `woken` when a success elsewhere
   * ended it early. Never rejects.
   */
  wait(wait: ProviderWait, signal: AbortSignal): Promise<'over' | 'woken'>;
  /** A call had its first token, or its answer. */
  succeeded(): void;
  waiting(): WaitingCalls;
}

export type ProviderWait = {
  readonly ms: number;
  /** False: it is sat out, whatever other calls learn meanwhile. */
  readonly canBeWoken: boolean;
};

/** Calls that wait because their provider asked for a pause. */
export type WaitingCalls = {
  readonly count: number;
  /** Since when the longest wait goes on, ms since the epoch; undefined when nobody waits. */
  readonly since: number | undefined;
};

export type ProviderWaitsDeps = {
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
};

const wokenAtOnce = 4;
const spreadMs = 500;

type Waiter = { readonly since: number; readonly canBeWoken: boolean; readonly woken: AbortController };

export function createProviderWaits({ clock, random }: ProviderWaitsDeps): ProviderWaits {
  // In the order in which they began to wait.
  const waiters = new Set<Waiter>();
  return {
    wait: async ({ ms, canBeWoken }, signal) => {
      const waiter = { since: clock.now(), canBeWoken, woken: new AbortController() };
      waiters.add(waiter);
      try {
        await clock.wait(ms, AbortSignal.any([signal, waiter.woken.signal]));
        if (!waiter.woken.signal.aborted || signal.aborted) return 'over';
        await clock.wait(Math.round(spreadMs * random()), signal);
        return 'woken';
      } finally {
        waiters.delete(waiter);
      }
    },
    succeeded: () => {
      const next = [...waiters].filter((one) => one.canBeWoken && !one.woken.signal.aborted);
      for (const { woken } of next.slice(0, wokenAtOnce)) woken.abort();
    },
    waiting: () => ({ count: waiters.size, since: waiters.values().next().value?.since }),
  };
}
