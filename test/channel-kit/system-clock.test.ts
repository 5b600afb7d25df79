import { describe, expect, it } from 'vitest';
import { systemClock, untilStep } from '#channel-kit/system-clock.ts';

describe('the clock of the process', () => {
  it.each([2 ** 31, 1e15, Number.MAX_VALUE, Number.POSITIVE_INFINITY])(
    'does not end a wait of %d ms at once',
    async (ms) => {
      const ended = new AbortController();
      const wait = systemClock.wait(ms, ended.signal).then(() => 'waited' as const);
      // A timer that overflows fires after 1 ms, before this shorter one.
      const later = systemClock.wait(20).then(() => 'later' as const);
      expect(await Promise.race([wait, later])).toBe('later');
      ended.abort();
      await wait;
    },
  );

  it('waits for the same moments whenever it begins, and not again for one that its timer was early for', () => {
    expect([0, 1, 600, 998, 998.5, 999.9].map((at) => untilStep(1_000, at))).toEqual([
      1_000, 999, 400, 2, 1_002, 1_001,
    ]);
  });
});
