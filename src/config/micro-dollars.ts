/** Dollars, as people write them, in whole micro-dollars, as everything is counted. */
export function microDollars(dollars: number): number {
  return Math.round(dollars * 1_000_000);
}
