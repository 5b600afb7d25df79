/** Share of a name's letters that must fit. */
const minLikeness = 0.4;

/**
 * Returns the known name that `given` was probably meant to be: the nearest, of equally near ones the first; undefined
 * when none is close. The beginning of a single name means that name.
 */
export function suggestName(given: string, known: readonly string[]): string | undefined {
  const typed = lettersOf(given);
  const most = Math.max(2, Math.floor(typed.length / 3));
  const near = known
    .map((name) => ({ name, letters: lettersOf(name) }))
    // Bounds the work: names differ at least as much as their lengths do.
    .filter(({ letters }) => Math.abs(letters.length - typed.length) <= most)
    .map(({ name, letters }) => ({ name, letters, distance: editDistance(typed, letters) }))
    .filter(({ letters, distance }) => {
      const length = Math.max(letters.length, typed.length);
      return distance <= most && length - distance > length * minLikeness;
    })
    .toSorted((a, b) => a.distance - b.distance);
  return near[0]?.name ?? nameThatBegins(typed, known);
}

/** Returns a name as it is compared: `pollSeconds`, `poll-seconds` and `POLL_SECONDS` are one. */
function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[-_]/g, '');
}

function nameThatBegins(typed: string, known: readonly string[]): string | undefined {
  const [name, ...others] = known.filter((each) => typed.length >= 3 && lettersOf(each).startsWith(typed));
  return others.length === 0 ? name : undefined;
}

/** Returns how many insertions, deletions, replacements and swaps of neighbors turn `a` into `b`. */
function editDistance(a: string, b: string): number {
  const row0 = Array.from({ length: b.length + 1 }, (_, index) => index);
  let [before, previous] = [row0, row0];
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const removed = (previous[column] ?? 0) + 1;
      const inserted = (current[column - 1] ?? 0) + 1;
      const isSwap = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swapped = isSwap ? (before[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      current.push(Math.min(replaced, removed, inserted, swapped));
    }
    [before, previous] = [previous, current];
  }
  return previous[b.length] ?? 0;
}
