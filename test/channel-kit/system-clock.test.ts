import { describe, expect, it } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';

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
});
