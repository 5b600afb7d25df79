/** Converts dollars, as people write them, to whole micro-dollars, in which all costs are counted. */
export function microDollars(dollars: number): number {
  return Math.round(dollars * 1_000_000);
}

/** Converts megabytes, as people write them, to whole bytes; rounded, since 1.1 × 1e6 is slightly over 1,100,000. */
export function bytesOf(megabytes: number): number {
  return Math.round(megabytes * 1_000_000);
}
