/**
 * Compares the time of a text with that of one twice as long. Why it does not flicker beside a busy process:
 * other work only ever lengthens a run, so of several runs the shortest counts, taken in turns with the other
 * length; one round that is in order is enough, and "too steep" has to hold in every round at each of two
 * sizes. A slow moment lengthens some runs, a quadratic function every run at every size.
 */

export type Verdict =
  /** Too little time at the largest size to compare: whatever its shape, it holds nobody up. */
  | { readonly kind: 'quick' }
  | { readonly kind: 'linear' }
  | { readonly kind: 'steep'; readonly growth: number };

export type Growing = {
  run(text: string): unknown;
  /** A text of about this length, in UTF-16 units. */
  textOf(length: number): string;
};

export type Sizes = {
  /** Where the measuring begins, UTF-16 units; the longest text is four times as long. */
  readonly length: number;
};

/** Twice the length may take three times as long: twice, and half as much again for caches and collections. */
const mostGrowth = 3;
/** Below this a collection or a switch of the thread is a large part of it, ms. */
const leastMs = 3;
const rounds = 10;

export function growthOf(growing: Growing, { length }: Sizes): Verdict {
  const first = measure(growing, growing.textOf(length));
  if (first < leastMs) return { kind: 'quick' };
  // A steep one takes minutes at a large size: it is compared at the smallest that can be measured.
  const half = smallestMeasurable(growing, length);
  let growth = 0;
  for (const from of [half, half * 2]) {
    growth = compare(growing, from);
    if (growth <= mostGrowth) return { kind: 'linear' };
  }
  return { kind: 'steep', growth };
}

function smallestMeasurable(growing: Growing, length: number): number {
  let size = Math.max(1, Math.floor(length / 64));
  while (size < length / 2 && measure(growing, growing.textOf(size)) < leastMs) size *= 2;
  return size;
}

function compare(growing: Growing, length: number): number {
  const short = growing.textOf(length);
  const long = growing.textOf(length * 2);
  let shortMs = Number.POSITIVE_INFINITY;
  let longMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round += 1) {
    shortMs = Math.min(shortMs, measure(growing, short));
    longMs = Math.min(longMs, measure(growing, long));
    if (longMs <= shortMs * mostGrowth) return longMs / shortMs;
  }
  return longMs / shortMs;
}

/** Ms. */
function measure({ run }: Growing, text: string): number {
  const startedAt = performance.now();
  run(text);
  return performance.now() - startedAt;
}
