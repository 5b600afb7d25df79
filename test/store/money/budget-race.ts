/** Runs that race for the last dollar of a budget. */
import type { Store, StoreQuery } from '../../../src/store/base/command.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import type { BudgetLimit } from '../../../src/store/money/budget.ts';
import { callIdOf, reserveCall } from '../../../src/store/money/model-call.ts';
import { endWithout } from '../builders.ts';
import { rate } from '../call-builders.ts';

/** `limits`: the race watches the budget of the first. */
export type Race = { readonly runs: readonly ClaimedRun[]; readonly limits: readonly BudgetLimit[] };

/** How many calls were made, the most that the budget reached in any reading, and the budgets that refused. */
export type Raced = { readonly left: number; readonly most: number; readonly refusedBy: readonly string[] };

type Budget = { readonly spent: number; readonly reserved: number };

export const readBudget: StoreQuery<{ readonly key: string }, Budget | undefined> = {
  query: 'readBudget',
  run: (tx, { key }) =>
    tx.db.selectFrom('budgets').select(['spent', 'reserved']).where('key', '=', key).executeTakeFirst(),
};

const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** Lets each run reserve a call that costs less in the end, all concurrently. */
export async function race(store: Store, { runs, limits }: Race): Promise<Raced> {
  let [left, most] = [0, 0];
  const refusedBy: string[] = [];
  const look = async () => {
    const budget = await store.read(readBudget, { key: limits[0]?.key ?? '' });
    most = Math.max(most, (budget?.spent ?? 0) + (budget?.reserved ?? 0));
  };
  const work = async (run: ClaimedRun, n: number) => {
    const { laneKey, epoch, runId, sessionId } = run;
    const id = callIdOf(epoch, 2);
    const call = { id, runId, sessionId, purpose: 'turn', rate, reserved: 900 } as const;
    const reserved = await store.write(reserveCall, { laneKey, epoch, runId, call, limits, ends: [] });
    await look();
    if (reserved.kind === 'spent') return void refusedBy.push(reserved.refusal.scope);
    left += 1;
    const end = { state: 'settled', usage, cost: 300 + (n % 3) * 300, model: 'test' } as const;
    await endWithout(store, run, 'aborted', { modelCalls: [{ id, latencyMs: 1, end }] });
    await look();
  };
  await Promise.all(runs.map(work));
  return { left, most, refusedBy };
}
