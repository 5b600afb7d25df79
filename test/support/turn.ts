import { isLong } from './long-run.ts';
/**
 * Each day's `npm test` runs one share of expensive, similar cases, and the following days run the others;
 * `test:long` runs all of them. `TEST_TURN` repeats the share of another day.
 */
export const turn = Number(process.env.TEST_TURN ?? Math.floor(Date.now() / 86_400_000));

/** Returns the day's share of `all`, one of `shares`; everything in the long run. */
export function shareOf<T>(all: readonly T[], shares: number): readonly T[] {
  if (isLong) return all;
  return all.filter((_, index) => (index + turn) % shares === 0);
}
