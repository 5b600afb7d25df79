/**
 * A run of `npm test` plays a share of what is costly and alike, the runs of the next days the other shares;
 * `test:long` plays all. `TEST_TURN` gives the share of another day again.
 */
export const turn = Number(process.env.TEST_TURN ?? Math.floor(Date.now() / 86_400_000));

/** The day's share of `all`, one of `shares`; all of it in the long run. */
export function shareOf<T>(all: readonly T[], shares: number): readonly T[] {
  if (process.env.PARLEY_LONG === '1') return all;
  return all.filter((_, index) => (index + turn) % shares === 0);
}
