import type { BudgetScope } from '#contracts/model.ts';
import type { NoticeKey } from './notices.ts';

/** Text that names a budget, as in “The budget for this conversation is used up”. */
export const budgetNames: Readonly<Record<BudgetScope, NoticeKey>> = {
  run: 'budgetRun',
  session: 'budgetSession',
  tree: 'budgetTree',
  person: 'budgetPerson',
  gateway: 'budgetGateway',
};

/** Writes micro-dollars as dollars, small amounts with four decimals: `$0.0123`, `$12.50`. */
export function dollarText(microDollars: number): string {
  const dollars = microDollars / 1e6;
  return `$${dollars.toFixed(Math.abs(dollars) < 1 ? 4 : 2)}`;
}
