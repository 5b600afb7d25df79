/**
 * Compares the time of a text with that of one twice as long. Why it does not flicker beside a busy process: only
 * the time counts that this process had a core; a cold cache or a collection only ever lengthens a run, so of
 * several runs the shortest counts, taken in turns with the other length; one round that is in order is enough, and "too steep" has to hold in every round at each of two
 * sizes. A slow moment lengthens some runs, a quadratic function every run at every size.
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
/** A steep one is compared at a shorter length, ms. */
const mostMs = 250;
const rounds = 8;

/** `length`: of the longest text, in UTF-16 units. */
export function growthOf(growing: Growing, length: number): Verdict {
  let longest = length;
  let ms = measure(growing, longest);
  if (ms < leastMs) return { kind: 'quick' };
  for (; ms > mostMs && longest > 64; longest = Math.floor(longest / 2)) ms = measure(growing, longest / 2);
  const growth = compare(growing, longest);
  if (growth <= mostGrowth || compare(growing, Math.floor(longest / 2)) <= mostGrowth)
    return { kind: 'linear' };
  return { kind: 'steep', growth };
}

function compare(growing: Growing, length: number): number {
  let short = Number.POSITIVE_INFINITY;
  let long = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round += 1) {
    short = Math.min(short, measure(growing, Math.floor(length / 2)));
    long = Math.min(long, measure(growing, length));
    if (long <= short * mostGrowth) break;
  }
  return long / short;
}

/** Ms. */
function measure({ run, textOf }: Growing, length: number): number {
  const text = textOf(length);
  const before = process.cpuUsage();
  run(text);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
