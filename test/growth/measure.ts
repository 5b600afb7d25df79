/**
 * Compares the time of a text with that of one twice as long. Why it does not flicker beside a busy process:
 * processor time is compared, of lengths that take long enough to be measured. What else lengthens
 * a run (a collection, a cold cache) does so to some only, so of several runs the shortest counts, taken in turns
 * with the other length, and "too steep" has to hold again and again, at each of two sizes. A slow moment lengthens some runs, a
 * quadratic function every run at every size.
 */

export type Verdict =
  /** Too little time at this length to hold anybody up, whatever its curve. */
  | { readonly kind: 'quick' }
  | { readonly kind: 'linear' }
  | { readonly kind: 'steep'; readonly growth: number };

export type Growing = {
  run(text: string): unknown;
  /** A text of about this length, in UTF-16 units. */
  textOf(length: number): string;
};

/** Twice the length may take three times as long: twice, and half as much again for caches and collections. */
const mostGrowth = 3;
/** Below this a collection or a switch of the thread is a large part of it, ms. */
const leastMs = 8;
/** Less than this is not compared: a clock may stand still meanwhile, and a share of nothing is no number, ms. */
const leastMeasuredMs = 20;
/** What takes longer is compared at a shorter length, ms. */
const mostMs = 100;
/** Two rounds that are as clear as this decide; a nearer result is measured again. */
const clearGrowth = 2.4;
const rounds = 5;
/** A curve is steep when each of these says so, at the longer and the shorter length by turns. */
const comparisons = 6;

/** `length`: of the longest text, in UTF-16 units. */
export function growthOf(growing: Growing, length: number): Verdict {
  const startedAt = performance.now();
  growing.run(growing.textOf(length));
  // Never less than the processor time, and cheaper to ask for.
  if (performance.now() - startedAt < leastMs) return { kind: 'quick' };
  let longest = length;
  for (; longest > 64 && measure(growing, { length: longest, times: 1 }) > mostMs; )
    longest = Math.floor(longest / 2);
  let growth = Number.POSITIVE_INFINITY;
  for (let comparison = 0; comparison < comparisons; comparison += 1) {
    growth = Math.min(growth, compare(growing, comparison % 2 === 0 ? longest : Math.floor(longest / 2)));
    if (growth <= mostGrowth) return { kind: 'linear' };
  }
  return { kind: 'steep', growth };
}

/** Both lengths are run so often that the shorter text takes long enough. */
function compare(growing: Growing, length: number): number {
  const half = Math.floor(length / 2);
  let times = 1;
  const shorter = () => measure(growing, { length: half, times });
  let short = 0;
  while (short < leastMeasuredMs) {
    while (shorter() < leastMeasuredMs) times *= 2;
    // Once more: compiled, the same work may take less than the clock can tell.
    short = shorter();
  }
  // A clock that stood still meanwhile has made them far too many.
  while (short > 8 * leastMeasuredMs && times > 1) {
    times = Math.ceil(times / 2);
    short = shorter();
  }
  let long = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round += 1) {
    long = Math.min(long, measure(growing, { length, times }));
    short = Math.min(short, Math.max(shorter(), leastMeasuredMs / 2));
    // One slow moment of the shorter text must not make a steep curve look flat.
    if (round > 0 && long <= short * clearGrowth) break;
  }
  return long / short;
}

/** Ms of this process's processor time: the thread's own is counted in whole ticks of 4 ms on some machines. */
function measure({ run, textOf }: Growing, { length, times }: { length: number; times: number }): number {
  const text = textOf(length);
  const before = process.cpuUsage();
  for (let time = 0; time < times; time += 1) run(text);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
