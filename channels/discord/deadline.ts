import type { Clock } from '#contracts/clock.ts';

/**
 * Resolves when the clock reaches that moment, or immediately when the signal aborts. A timer may fire early, and a
 * machine that slept wakes up late, so only the clock counts.
 */
export async function waitUntil(clock: Clock, moment: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const leftMs = moment - clock.now();
    if (leftMs <= 0) return;
    await clock.wait(leftMs, signal);
  }
}
