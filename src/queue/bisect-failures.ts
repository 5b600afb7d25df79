import { isStoreAway } from '#contracts/errors.ts';

/**
 * Has the store act on all rows in one step. If that fails, it acts on each half separately, so that a bad row doesn't
 * hold up the others; `onBad` receives each bad row. Throws while the store is unavailable.
 */
export async function bisectFailures<Row, Result>(
  rows: readonly Row[],
  act: (rows: readonly Row[]) => Promise<Result>,
  onBad: (row: Row, error: unknown) => Promise<void> | void,
): Promise<readonly Result[]> {
  const [first, ...others] = rows;
  if (first === undefined) return [];
  try {
    return [await act(rows)];
  } catch (error) {
    if (isStoreAway(error)) throw error;
    if (others.length === 0) {
      await onBad(first, error);
      return [];
    }
    const half = Math.ceil(rows.length / 2);
    return [
      ...(await bisectFailures(rows.slice(0, half), act, onBad)),
      ...(await bisectFailures(rows.slice(half), act, onBad)),
    ];
  }
}
