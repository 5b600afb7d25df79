import type { Clock } from '#contracts/clock.ts';

/**
 * Resolves when the clock shows that moment, or at once when the signal aborts. A timer may run out before
 * its time, and a machine that slept wakes up after it: what counts is what the clock shows.
 */
export async function waitUntil(clock: Clock, moment: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const leftMs = moment - clock.now();
    if (leftMs <= 0) return;
    await clock.wait(leftMs, signal);
  }
}
