import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { createByteBudget } from '../../src/outbox/byte-budget.ts';
import { budget, holds } from '../support/holds.ts';

const forever = new AbortController().signal;
/** Lets what has been decided be seen. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

it('lets uploads wait in order until there is room for them', async () => {
  const budget = createByteBudget(10);
  const first = await budget.take(6, forever);
  const admitted: string[] = [];
  void budget.take(8, forever).then(() => admitted.push('large'));
  void budget.take(1, forever).then(() => admitted.push('small'));
  await settle();
  expect(admitted).toEqual([]);
  first?.();
  await settle();
  expect(admitted).toEqual(['large', 'small']);
});

it('gives an upload that is larger than the budget all of it', async () => {
  const budget = createByteBudget(10);
  const large = await budget.take(1_000, forever);
  const admitted = vi.fn();
  const next = budget.take(1, forever).then(admitted);
  await settle();
  expect(admitted).not.toHaveBeenCalled();
  large?.();
  large?.();
  await next;
  expect(admitted).toHaveBeenCalledOnce();
  expect(await budget.take(9, forever)).toBeDefined();
});

it('lets those behind an upload that has given up go on', async () => {
  const budget = createByteBudget(10);
  await budget.take(6, forever);
  const giving = new AbortController();
  const [large, small] = [budget.take(8, giving.signal), budget.take(4, forever)];
  giving.abort();
  expect(await large).toBeUndefined();
  expect(await small).toBeDefined();
  expect(await budget.take(1, giving.signal)).toBeUndefined();
});

it('never admits more than the budget, and in the end everybody', () =>
  holds(
    fc.asyncProperty(fc.array(fc.nat(15), { minLength: 1, maxLength: 30 }), async (sizes) => {
      const bytes = createByteBudget(10);
      let [used, most] = [0, 0];
      await Promise.all(
        sizes.map(async (size) => {
          const release = await bytes.take(size, forever);
          const taken = Math.min(size, 10);
          used += taken;
          most = Math.max(most, used);
          await settle();
          used -= taken;
          release?.();
        }),
      );
      expect(most).toBeLessThanOrEqual(10);
      expect(used).toBe(0);
    }),
    budget(200),
  ));
