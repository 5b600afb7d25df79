/**
 * The calls of this process that wait to retry one provider. A successful call shows that the provider is
 * back and wakes those that have waited longest, a few at a time and spread over a moment; each success
 * wakes the next few. So 200 waiters don't cause a stampede, and a provider that is still struggling isn't
 * called by all of them. Other processes aren't notified; their own calls wake their own waiters.
 */
import type { Clock } from '#contracts/clock.ts';

export interface ProviderWaits {
  /**
   * Resolves with `over` when the time is up or the signal aborts, and with `woken` when another call's success
   * ended the wait early. Never rejects.
   */
  wait(wait: ProviderWait, signal: AbortSignal): Promise<'over' | 'woken'>;
  /** Reports that a call received its first token or its answer. */
  succeeded(): void;
  waiting(): WaitingCalls;
}

export type ProviderWait = {
  readonly ms: number;
  /** False: the wait runs its full length, whatever happens to other calls meanwhile. */
  readonly canBeWoken: boolean;
};

/** Calls that wait because their provider asked for a pause. */
export type WaitingCalls = {
  readonly count: number;
  /** When the longest wait began, ms since the epoch; undefined when no call waits. */
  readonly since: number | undefined;
};

const wokenAtOnce = 4;
const spreadMs = 500;

type Waiter = { readonly since: number; readonly canBeWoken: boolean; readonly woken: AbortController };

export function createProviderWaits(deps: {
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
}): ProviderWaits {
  const { clock, random } = deps;
  // In the order in which they started to wait.
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
