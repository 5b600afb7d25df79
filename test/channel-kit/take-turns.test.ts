import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createYielder } from '#channel-kit/take-turns.ts';

it('lets others take turns whenever work has taken long enough', async () => {
  let now = 0;
  let turns = 0;
  const turn = createYielder(() => now);
  for (let piece = 0; piece < 10; piece += 1) {
    void nextTurn().then(() => {
      turns += 1;
    });
    now += 5;
    await turn();
  }
  expect(turns).toBe(10);
});
