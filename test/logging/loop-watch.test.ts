import { expect, it } from 'vitest';
import type { Log } from '../../src/contracts/log.ts';
import { createCloseWatch, createHolds } from '../../src/logging/loop-watch.ts';

function aWatch() {
  let now = 0;
  const told: unknown[] = [];
  const details: object[] = [];
  const log = {
    warn: (fields: object, event: string) => told.push([event, fields]),
    debug: (fields: object) => details.push(fields),
  } as unknown as Log;
  const holds = createHolds({ log, now: () => now });
  const pass = (ms: number) => {
    now += ms;
  };
  return { holds, told, details, pass };
}

it('reports a hold with the runs that are active, at most five, and ignores short ones', () => {
  const { holds, told, pass } = aWatch();
  let runIds: readonly string[] = [];
  holds.start(() => runIds);
  pass(90_000);
  holds.look(50);
  expect(told).toEqual([]);
  runIds = ['1', '2', '3', '4', '5', '6'];
  holds.look(85.4);
  expect(told).toEqual([['loop.held', { heldMs: 85, runIds: ['1', '2', '3', '4', '5'], times: 1 }]]);
});

it('counts every hold, and logs many as one line', () => {
  const { holds, told, pass } = aWatch();
  for (let second = 0; second < 20; second += 1) {
    holds.look(200);
    pass(1_000);
  }
  expect(told).toEqual([
    ['loop.held', { heldMs: 200, runIds: [], times: 1 }],
    ['loop.held', { heldMs: 200, runIds: [], times: 10 }],
  ]);
  expect(holds.held()).toBe(20);
});

it('counts holds during the first 90 seconds, but warns only of later ones', () => {
  const { holds, told, details, pass } = aWatch();
  holds.start();
  holds.look(400);
  pass(89_999);
  holds.look(70);
  expect(told).toEqual([]);
  pass(1);
  holds.look(80);
  expect(told).toEqual([['loop.held', { heldMs: 80, runIds: [], times: 1 }]]);
  expect(details).toEqual([
    { heldMs: 400, runIds: [] },
    { heldMs: 70, runIds: [] },
  ]);
  expect(holds.held()).toBe(3);
});

/** A loop of which each look tells how long it has worked, and how late it was at most; both in ms. */
function aCloseWatch() {
  let second = { workedMs: 0, lateMs: 0 };
  let isOn = false;
  const turn = (on: boolean) => {
    isOn = on;
    return true;
  };
  const seen: number[] = [];
  const watch = createCloseWatch({
    monitor: {
      enable: () => turn(true),
      disable: () => turn(false),
      reset: () => undefined,
      percentile: () => 0,
      get count() {
        return isOn ? 50 : 0;
      },
      get max() {
        return (second.lateMs + 20) * 1e6;
      },
    },
    workedMs: () => second.workedMs,
    holds: { look: (lateMs) => void seen.push(Math.round(lateMs)) },
  });
  const pass = (workedMs: number, lateMs = 0) => {
    second = { workedMs, lateMs };
    watch.look();
    return isOn;
  };
  return { watch, seen, pass };
}

it('stops measuring delays when the loop has been idle for three looks', () => {
  const { watch, pass } = aCloseWatch();
  watch.begin();
  expect([pass(5), pass(80), pass(5), pass(50), pass(5)]).toEqual([true, true, true, true, false]);
});

it('measures delays again once the loop works for longer than it may be held', () => {
  const { seen, pass } = aCloseWatch();
  expect([pass(50), pass(51), pass(300, 120)]).toEqual([false, true, true]);
  expect(seen).toEqual([0, 0, 120]);
});

it('measures delays from the moment at which work begins', () => {
  const { watch, seen, pass } = aCloseWatch();
  watch.begin();
  pass(90, 70);
  expect(seen).toEqual([70]);
});
