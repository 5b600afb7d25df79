import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createSlots } from '../../src/queue/lane-workers.ts';

it('never has more busy lanes than slots, and serves waiting ones in order of arrival', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(fc.oneof(fc.constant('take'), fc.constant('free'), fc.constant('release')), { maxLength: 60 }),
      async (count, steps) => {
        const slots = createSlots(count);
        const served: number[] = [];
        let held = 0;
        let asked = 0;
        for (const step of steps) {
          if (step === 'take') {
            const number = asked++;
            void slots.take().then(() => {
              held += 1;
              served.push(number);
            });
          } else if (step === 'free') {
            const isAnyoneWaiting = served.length < asked;
            const taken = slots.takeFree(2);
            if (isAnyoneWaiting) expect(taken).toBe(0);
            held += taken;
          } else if (held > 0) {
            held -= 1;
            slots.release();
          }
          await new Promise(setImmediate);
          expect(held).toBeLessThanOrEqual(count);
          expect(served).toEqual([...served].sort((a, b) => a - b));
        }
        while (held > 0) {
          held -= 1;
          slots.release();
          await new Promise(setImmediate);
        }
        expect(served).toHaveLength(asked);
      },
    ),
  );
});

it('waits for a slot no longer than told, and keeps no place for a caller that has given up', async () => {
  const slots = createSlots(1);
  await slots.take();
  expect(await slots.takeWithin(1)).toBe(false);
  const [patient, behind] = [slots.takeWithin(60_000), slots.take()];
  slots.release();
  expect(await patient).toBe(true);
  slots.release();
  await behind;
  expect(slots.takeFree(1)).toBe(0);
});
