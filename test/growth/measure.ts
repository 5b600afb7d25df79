/**
 * Compares the processor time of a text with that of one twice as long. What cannot flicker beside a busy
 * process: only this thread's own processor time counts, of several runs the shortest, a pair is measured
 * in turns, and a verdict of "too steep" must hold at two sizes in four rounds each; a slow moment lengthens
 * one run, a quadratic function every run at every size.
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
/** Below this a clock tick is a large part of it, ms. */
const leastMs = 3;
const rounds = 4;

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

/** Processor time of this thread, ms. */
function measure({ run }: Growing, text: string): number {
  const before = process.threadCpuUsage();
  run(text);
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
