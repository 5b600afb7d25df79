/** Converts dollars, as people write them, to whole micro-dollars, in which all costs are counted. */
export function microDollars(dollars: number): number {
  return Math.round(dollars * 1_000_000);
}
