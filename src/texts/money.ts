/** Writes micro-dollars as dollars, small amounts with four decimals: `$0.0123`, `$12.50`. */
export function dollarText(microDollars: number): string {
  const dollars = microDollars / 1e6;
  return `$${dollars.toFixed(Math.abs(dollars) < 1 ? 4 : 2)}`;
}
