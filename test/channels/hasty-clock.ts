import { systemClock } from '#channel-kit/system-clock.ts';
import type { Clock } from '#contracts/clock.ts';

/** Real time, but pauses last 10 ms at most, so that backing off does not slow the tests. */
export const hastyClock: Clock = {
  now: systemClock.now,
  wait: (ms, signal) => systemClock.wait(Math.min(ms, 10), signal),
};

/** As `hastyClock` for pauses that are shorter; the others last as long as they say. */
export function hastyBelow(longMs: number): Clock {
  const wait: Clock['wait'] = (ms, signal) => (ms < longMs ? hastyClock : systemClock).wait(ms, signal);
  return { ...hastyClock, wait };
}
