import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  askedWaitMs,
  clampRemote,
  clockSkewMs,
  earliestTime,
  longestWaitMs,
  remoteCount,
  remoteSize,
  remoteTime,
  retryAfterMs,
  shortestGapMs,
} from '#channel-kit/remote-number.ts';
import { isLong } from '../support/long-run.ts';

const now = Date.UTC(2026, 10, 22);
const hostile = fc.oneof(
  fc.constantFrom(-1, 0, -0, Number.NaN, 1e300, -1e300, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
  fc.constantFrom(
    undefined,
    null,
    '',
    ' ',
    '12',
    '1e300',
    '-5',
    '0x10',
    '9'.repeat(400),
    true,
    {},
    [],
    2n ** 80n,
  ),
  fc.double(),
  fc.anything(),
);
const runs = { numRuns: isLong ? 20_000 : 500 };

describe('numbers from a network', () => {
  it('keeps any number within its range', () => {
    fc.assert(
      fc.property(hostile, fc.integer(), fc.nat(), (value, min, span) => {
        const max = min + span;
        const clamped = clampRemote(value, { min, max, fallback: min });
        expect(clamped >= min && clamped <= max).toBe(true);
        expect(Number.isSafeInteger(remoteCount(value)) && remoteCount(value) >= 0).toBe(true);
        expect(remoteCount(value, 7)).toBeLessThanOrEqual(7);
        const size = remoteSize(value);
        expect(size === undefined || (Number.isSafeInteger(size) && size >= 0)).toBe(true);
      }),
      runs,
    );
  });

  it('limits any wait to between the minimum gap and five minutes, in either unit', () => {
    fc.assert(
      fc.property(hostile, hostile, fc.constantFrom(1, 1000), (value, fallback, unitMs) => {
        const waitMs = retryAfterMs(value, { unitMs, fallbackMs: fallback as number });
        expect(waitMs >= shortestGapMs && waitMs <= longestWaitMs).toBe(true);
        const askedMs = askedWaitMs(value, unitMs) ?? 0;
        expect(Number.isSafeInteger(askedMs) && askedMs >= 0).toBe(true);
      }),
      runs,
    );
  });

  it('accepts no date before 2010 or in the future', () => {
    fc.assert(
      fc.property(hostile, fc.constantFrom(1, 1000), (value, unitMs) => {
        const time = remoteTime(value, now, unitMs);
        expect(time >= earliestTime && time <= now + clockSkewMs).toBe(true);
        expect(new Date(time).toISOString()).toMatch(/^20/);
      }),
      runs,
    );
  });

  it('keeps a sensible number unchanged', () => {
    expect(clampRemote('2.5', { min: 0, max: 10, fallback: 1 })).toBe(2.5);
    expect(remoteCount(3.9)).toBe(3);
    expect(remoteSize('1048576')).toBe(1_048_576);
    expect(retryAfterMs(42, { unitMs: 1000 })).toBe(42_000);
    expect(retryAfterMs('1.25', { unitMs: 1000 })).toBe(1250);
    expect(remoteTime(now / 1000 - 5, now, 1000)).toBe(now - 5000);
  });

  it.each([
    [undefined, undefined, 7000],
    ['soon', undefined, 7000],
    [-1, undefined, 7000],
    [0, 0, shortestGapMs],
    [86_400, 86_400_000, longestWaitMs],
    [3_000_000, 30 * 24 * 3_600_000, longestWaitMs],
    [1e300, 30 * 24 * 3_600_000, longestWaitMs],
    [Number.POSITIVE_INFINITY, 30 * 24 * 3_600_000, longestWaitMs],
  ])('reads a wait of %s seconds as a request for %s ms and a wait of %s ms', (value, askedMs, waitMs) => {
    expect(askedWaitMs(value, 1000)).toBe(askedMs);
    expect(retryAfterMs(value, { unitMs: 1000, fallbackMs: 7000 })).toBe(waitMs);
  });

  it.each([0, -1, Number.NaN, 8.64e15, 'yesterday', undefined])('replaces the date %s by now', (value) => {
    expect(remoteTime(value, now)).toBe(now);
  });
});
