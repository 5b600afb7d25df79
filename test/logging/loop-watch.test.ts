import { expect, it } from 'vitest';
import type { Log } from '../../src/contracts/log.ts';
import { createHolds } from '../../src/logging/loop-watch.ts';

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

it('names the section that held the loop, and ignores short ones', () => {
  const { holds, told, pass } = aWatch();
  holds.run('judge answer', () => pass(49));
  holds.look(49);
  expect(told).toEqual([]);
  expect(holds.run('shape', () => [pass(80), 'done'])).toEqual([undefined, 'done']);
  holds.run('preview', () => pass(3));
  holds.look(85);
  expect(told).toEqual([['loop.held', { section: 'shape', heldMs: 85, times: 1 }]]);
});

it('says unknown if no section explains a hold, and logs many holds as one line', () => {
  const { holds, told, pass } = aWatch();
  for (let second = 0; second < 20; second += 1) {
    holds.run('preview', () => pass(20));
    holds.look(200);
    pass(980);
  }
  expect(told).toEqual([
    ['loop.held', { section: 'unknown', heldMs: 200, times: 1 }],
    ['loop.held', { section: 'unknown', heldMs: 200, times: 10 }],
  ]);
  expect([...holds.held()]).toEqual([['unknown', 20]]);
});

it('names the innermost section, which does not include nested ones', () => {
  const { holds, told, pass } = aWatch();
  holds.run('page frame', () => {
    pass(5);
    holds.run('shape', () => pass(60));
    holds.run('preview', () => pass(20));
  });
  holds.look(85);
  holds.run('webhook', () => pass(70));
  holds.look(70);
  expect([...holds.held()]).toEqual([
    ['shape', 1],
    ['webhook', 1],
  ]);
  expect(told).toEqual([['loop.held', { section: 'shape', heldMs: 85, times: 1 }]]);
});

it('counts a section that throws', () => {
  const { holds, told, pass } = aWatch();
  const fail = () => {
    pass(60);
    throw new Error('no');
  };
  expect(() => holds.run('shape', fail)).toThrow('no');
  holds.look(0);
  expect(told).toHaveLength(1);
});

it('counts holds during the first minute, but warns only of later ones', () => {
  const { holds, told, details, pass } = aWatch();
  holds.start();
  holds.run('shape', () => pass(400));
  holds.look(400);
  pass(59_599);
  holds.look(70);
  expect(told).toEqual([]);
  pass(1);
  holds.look(80);
  expect(told).toEqual([['loop.held', { section: 'unknown', heldMs: 80, times: 1 }]]);
  expect(details).toEqual([
    { section: 'shape', heldMs: 400 },
    { section: 'unknown', heldMs: 70 },
  ]);
  expect([...holds.held()]).toEqual([
    ['shape', 1],
    ['unknown', 2],
  ]);
});

it.each(['collection at rest', 'compile cache'])(
  'never warns of the %s, which waits for an idle moment',
  (work) => {
    const { holds, told, details, pass } = aWatch();
    holds.run(work, () => pass(300));
    holds.look(300);
    expect(told).toEqual([]);
    expect(details).toEqual([{ section: work, heldMs: 300 }]);
  },
);
