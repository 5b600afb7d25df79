import { describe, expect, it } from 'vitest';
import { createCallPace } from '../../src/channel-host/call-pace.ts';
import { createSteppedClock } from '../support/stepped-clock.ts';

const allowed = 30;
const signal = new AbortController().signal;
const limitMs = 30_000;

function aPace() {
  const clock = createSteppedClock();
  const pace = createCallPace(allowed, clock);
  const calls: number[] = [];
  const begunAt = clock.now();
  const deliver = async () => {
    await pace.turn(limitMs, signal);
    calls.push(clock.now() - begunAt);
  };
  return { clock, pace, calls, deliver };
}

/** The most calls within any second. */
const most = (calls: readonly number[]) =>
  Math.max(...calls.map((from) => calls.filter((at) => at >= from && at < from + 1_000).length));

describe('the pace of an account', () => {
  it('lets every delivery go at once until the network has refused a call', async () => {
    const { clock, pace, deliver } = aPace();
    await Promise.all(Array.from({ length: 200 }, deliver));
    pace.refused();
    void deliver();
    void deliver();
    expect(clock.waits.length).toBeGreaterThan(0);
    await clock.advance(61_000);
    await Promise.all(Array.from({ length: 200 }, deliver));
  });

  it('lets deliveries go in order after a refusal, as many a second as the network allows', async () => {
    const { clock, pace, calls } = aPace();
    pace.refused();
    const order: number[] = [];
    const all = Array.from({ length: 200 }, async (_, index) => {
      await pace.turn(limitMs, signal);
      order.push(index);
      calls.push(clock.now());
    });
    await clock.advance(10_000);
    await Promise.all(all);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(most(calls)).toBeLessThanOrEqual(allowed);
    // Nobody waits longer than the allowance makes necessary.
    expect(Math.max(...calls) - Math.min(...calls)).toBeLessThanOrEqual((1_000 * 200) / (0.8 * allowed));
  });

  it('shows no sign of life that would make a delivery wait', async () => {
    const { clock, pace, calls, deliver } = aPace();
    // From now on deliveries would wait; nothing is shown for a while.
    pace.refused();
    await clock.advance(5_000);
    let shown = 0;
    for (let ms = 5_000; ms < 15_000; ms += 10) {
      if (pace.mayShow()) {
        shown += 1;
        calls.push(ms);
      }
      if (ms % 200 === 0) void deliver();
      await clock.advance(10);
    }
    expect(clock.waits).toEqual([]);
    expect(shown).toBeGreaterThan(100);
    expect(most(calls)).toBeLessThanOrEqual(allowed);
  });

  it('shows nothing while deliveries wait, nor for a while after the network refused a call', async () => {
    const { clock, pace, deliver } = aPace();
    for (let count = 0; count < 30; count += 1) void deliver();
    expect(pace.mayShow()).toBe(false);
    await clock.advance(5_000);
    expect(pace.mayShow()).toBe(true);
    pace.refused();
    await clock.advance(4_000);
    expect(pace.mayShow()).toBe(false);
    await clock.advance(2_000);
    expect(pace.mayShow()).toBe(true);
  });

  it('refuses a delivery whose turn comes too late, and lets one go at once when it is told to stop', async () => {
    const { clock, pace } = aPace();
    pace.refused();
    for (let count = 0; count < 100; count += 1) void pace.turn(limitMs, signal);
    expect(await Promise.all([pace.turn(500, signal), pace.turn(500, signal)])).toEqual([false, false]);
    const stopped = new AbortController();
    const last = pace.turn(limitMs, stopped.signal);
    stopped.abort();
    expect(await last).toBe(true);
    // The two that were refused have taken nobody's turn.
    expect(clock.waits.at(-1)).toBeCloseTo(((101 - 0.2 * allowed) * 1_000) / (0.8 * allowed));
  });
});
