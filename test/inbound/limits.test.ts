import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBoundedMap, createRateLimit } from '../../src/inbound/rate-limit.ts';
import { holds } from '../support/holds.ts';

describe('the rate limit', () => {
  it('allows a burst, then one message per refill', () => {
    const limit = createRateLimit({ perMinute: 60 });
    for (let n = 0; n < 60; n++) expect(limit.take('a', 0).kind).toBe('within');
    expect(limit.take('a', 0)).toEqual({ kind: 'exceeded', retryAfterMs: 1000, isFirst: true });
    expect(limit.take('a', 400)).toEqual({ kind: 'exceeded', retryAfterMs: 600, isFirst: false });
    expect(limit.take('a', 1000).kind).toBe('within');
    expect(limit.take('a', 1000)).toMatchObject({ kind: 'exceeded', isFirst: false });
  });

  it('reports a flood once, however long it lasts, and again after a pause', () => {
    const limit = createRateLimit({ perMinute: 60 });
    const told = (from: number, to: number) => {
      let count = 0;
      for (let now = from; now < to; now += 20) {
        const verdict = limit.take('a', now);
        if (verdict.kind === 'exceeded' && verdict.isFirst) count += 1;
      }
      return count;
    };
    expect(told(0, 120_000)).toBe(1);
    expect(told(120_000, 125_000)).toBe(0);
    expect(told(160_000, 220_000)).toBe(1);
  });

  it('gives a redelivered event the same verdict', () => {
    const limit = createRateLimit({ perMinute: 1 });
    expect(limit.takeOnce('one', 'a', 0).kind).toBe('within');
    for (let n = 0; n < 5; n++) expect(limit.takeOnce('one', 'a', n).kind).toBe('within');
    expect(limit.takeOnce('two', 'a', 5).kind).toBe('exceeded');
  });

  it("doesn't let one sender use up the limit of another", () => {
    const limit = createRateLimit({ perMinute: 1 });
    limit.take('flood', 0);
    expect(limit.take('flood', 1).kind).toBe('exceeded');
    expect(limit.take('other', 1).kind).toBe('within');
  });

  it('never allows more than the burst and its refill, whatever the arrivals', () => {
    const gaps = fc.array(fc.integer({ min: -500, max: 5_000 }), { maxLength: 300 });
    holds(
      fc.property(gaps, fc.integer({ min: 1, max: 30 }), (arrivals, perMinute) => {
        const limit = createRateLimit({ perMinute });
        let now = 0;
        let forward = 0;
        let taken = 0;
        for (const gap of arrivals) {
          now += gap;
          forward += Math.max(0, gap);
          if (limit.take('a', now).kind === 'within') taken++;
        }
        expect(taken).toBeLessThanOrEqual(perMinute + (forward * perMinute) / 60_000 + 1e-6);
      }),
      { numRuns: 2000, interruptAfterTimeLimit: 500 },
    );
  });
});

describe('the bounded map', () => {
  it('keeps a map at its size under a flood, with the entries in use', () => {
    const map = createBoundedMap<number>(100);
    map.set('kept', 1);
    for (let n = 0; n < 100_000; n++) {
      map.set(`flood-${n}`, n);
      if (n % 50 === 0) map.get('kept');
    }
    expect(map.size).toBe(100);
    expect(map.get('kept')).toBe(1);
    expect(map.get('flood-1')).toBeUndefined();
  });
});
