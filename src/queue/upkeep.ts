import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { Store } from '../store/base/command.ts';
import { deleteOldBudgets, endBudgetAlerts } from '../store/money/budget.ts';

export type UpkeepDeps = { readonly store: Store; readonly clock: Clock; readonly log: Log };

/** First upkeep, ms after the start, so that it doesn't slow the start down. */
const firstMs = 300_000;
const intervalMs = 3_600_000;
/** Rows per commit, so that work that people wait for can come between. */
const atOnce = 500;

/**
 * Creates the upkeep, which deletes rows that are no longer needed and closes alerts that are over. Call the returned
 * function with every sweep; it acts once an hour.
 */
export function createUpkeep({ store, clock, log }: UpkeepDeps): () => Promise<void> {
  let nextAt = clock.now() + firstMs;
  return async () => {
    if (clock.now() < nextAt) return;
    await store.write(endBudgetAlerts, {});
    const deleted = await store.write(deleteOldBudgets, { limit: atOnce });
    if (deleted > 0) log.debug({ deleted }, 'budgets.deleted');
    if (deleted < atOnce) nextAt = clock.now() + intervalMs;
  };
}
