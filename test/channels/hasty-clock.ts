import { systemClock } from '#channel-kit/system-clock.ts';
import type { Clock } from '#contracts/clock.ts';

/** Real time, but pauses last 10 ms at most, so that backing off doesn't slow the tests down. */
export const hastyClock: Clock = {
  now: systemClock.now,
  wait: (ms, signal) => systemClock.wait(Math.min(ms, 10), signal),
};

/** Returns a clock like `hastyClock` for pauses shorter than `longMs`; longer ones take their full length. */
export function hastyBelow(longMs: number): Clock {
  const wait: Clock['wait'] = (ms, signal) => (ms < longMs ? hastyClock : systemClock).wait(ms, signal);
  return { ...hastyClock, wait };
}
