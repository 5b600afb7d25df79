/**
 * Compares the time for a text with that for one twice as long. The result is stable even next to a busy process:
 * it compares processor time, of lengths that take long enough to be measured. Other effects (a collection, a cold
 * cache) lengthen only some runs, so the shortest of several runs counts, alternating with the other length, and
 * "too steep" has to be confirmed several times at each of two sizes. A slow moment lengthens some runs, a
 * quadratic function every run at every size.
 */

export type Verdict =
  /** Too little time at this length to delay anybody, whatever its curve. */
  | { readonly kind: 'quick' }
  | { readonly kind: 'linear' }
  | { readonly kind: 'steep'; readonly growth: number };

export type Growing = {
  run(text: string): unknown;
  /** Returns a text of about this length, in UTF-16 units. */
  textOf(length: number): string;
};

/** Twice the length may take three times as long: twice, plus half as much again for caches and collections. */
const maxGrowth = 3;
/** Below this a collection or a thread switch is a large part of the time, ms. */
const minMs = 8;
/** Times below this aren't compared: the clock may not have advanced, and a ratio to zero is undefined, ms. */
const minMeasuredMs = 20;
/** Longer times are compared at a shorter length, ms. */
const maxMs = 100;
/** Two rounds below this ratio settle the result; a less clear one is measured again. */
const clearGrowth = 2.4;
const rounds = 5;
/** Beyond this ratio no slow moment explains it, and more rounds would only take minutes. */
const hopelessGrowth = 20;
/** A curve is steep if every comparison says so, at the longer and the shorter length in turn. */
const maxComparisons = 6;

/** `length`: of the longest text, in UTF-16 units. */
export function growthOf(growing: Growing, length: number, comparisons = maxComparisons): Verdict {
  const startedAt = performance.now();
  growing.run(growing.textOf(length));
  // Wall time is never less than processor time, and cheaper to read.
  if (performance.now() - startedAt < minMs) return { kind: 'quick' };
  let longest = length;
  for (; longest > 64 && measure(growing, { length: longest, times: 1 }) > maxMs; )
    longest = Math.floor(longest / 2);
  let growth = Number.POSITIVE_INFINITY;
  for (let comparison = 0; comparison < comparisons; comparison += 1) {
    growth = Math.min(growth, compare(growing, comparison % 2 === 0 ? longest : Math.floor(longest / 2)));
    if (growth <= maxGrowth) return { kind: 'linear' };
  }
  return { kind: 'steep', growth };
}

/** Runs both lengths often enough that the shorter text takes measurable time. */
function compare(growing: Growing, length: number): number {
  const half = Math.floor(length / 2);
  let times = 1;
  const shorter = () => measure(growing, { length: half, times });
  let short = 0;
  while (short < minMeasuredMs) {
    while (shorter() < minMeasuredMs) times *= 2;
    // Once more: after compilation the same work may take less than the clock can resolve.
    short = shorter();
  }
  // If the clock stood still meanwhile, `times` has become far too large.
  while (short > 8 * minMeasuredMs && times > 1) {
    times = Math.ceil(times / 2);
    short = shorter();
  }
  const guess = times > rounds ? guessedGrowth(growing, { length, times, short }) : 0;
  if (guess > hopelessGrowth) return guess;
  let long = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round += 1) {
    long = Math.min(long, measure(growing, { length, times }));
    short = Math.min(short, Math.max(shorter(), minMeasuredMs / 2));
    // One slow moment with the shorter text must not make a steep curve look flat.
    if (round > 0 && long <= short * clearGrowth) break;
  }
  return long / short;
}

/** Returns the growth by single runs: where a text is done at once up to some length, many runs of a longer one take minutes. */
function guessedGrowth(
  growing: Growing,
  { length, times, short }: { length: number; times: number; short: number },
): number {
  const single = Array.from({ length: rounds }, () => measure(growing, { length, times: 1 }));
  return (Math.min(...single) * times) / short;
}

/** Returns processor time of the process, ms: on some machines the thread's own is counted in ticks of 4 ms. */
function measure({ run, textOf }: Growing, { length, times }: { length: number; times: number }): number {
  const text = textOf(length);
  const before = process.cpuUsage();
  for (let time = 0; time < times; time += 1) run(text);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
