import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { holds } from './holds.ts';

test('lets a property finish the case in which its time ran out', async () => {
  const timeMs = 10;
  let [begun, ended] = [0, 0];
  const property = fc.asyncProperty(fc.nat(), async () => {
    begun += 1;
    if (begun > 1) await wait(10 * timeMs);
    ended += 1;
  });
  await holds(property, { interruptAfterTimeLimit: timeMs });
  expect([begun, ended]).toEqual([2, 2]);
});

test('tries a property with lists as long as it allows', () => {
  let longest = 0;
  const lists = fc.array(fc.nat(), { maxLength: 40 });
  holds(
    fc.property(lists, ({ length }) => {
      longest = Math.max(longest, length);
    }),
    { numRuns: 1_000 },
  );
  expect(longest).toBe(40);
});
