/**
 * Writes what budgets have spent and hold, and nothing else does. A call is judged and held in one statement, so
 * that calls which race for the last dollar can't both have it: PostgreSQL judges the row anew behind its lock,
 * SQLite has one writer. Callers hold their lane; keys are taken in order, behind sessions and before conversations.
 */
import { sql } from 'kysely';
import type { BudgetScope } from '#contracts/model.ts';
import type { Tx } from '../base/command.ts';
import { insertNewRow } from '../base/insert-row.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';

/** A budget that a call counts against, and its configured limit in micro-dollars. */
export type BudgetLimit = { readonly scope: BudgetScope; readonly key: string; readonly limit: number };

/** Holds the amount in every budget, or in none: then gives the one without room. */
export async function reserveBudgets(
  tx: Tx,
  limits: readonly BudgetLimit[],
  amount: number,
): Promise<BudgetLimit | undefined> {
  const held: BudgetLimit[] = [];
  for (const budget of inOrder(limits)) {
    const { key, limit } = budget;
    await insertNewRow(tx, 'budgets', { key, spent: 0, reserved: 0 });
    if ((await holdIfRoom.run(tx, { key, limit, amount })) === 0) {
      for (const { key } of held) await settle.run(tx, { key, reserved: amount, cost: 0 });
      return budget;
    }
    held.push(budget);
  }
  return undefined;
}

const holdIfRoom = prepared((db, of: QueryParams<{ key: string; limit: number; amount: number }>) =>
  db
    .updateTable('budgets')
    .set((eb) => ({ reserved: eb('reserved', '+', of.amount) }))
    .where('key', '=', of.key)
    .where(sql<boolean>`spent + reserved + ${of.amount} <= coalesce("raisedTo", ${of.limit})`),
);

/** Turns what a call held into what it cost. */
export async function settleBudgets(
  tx: Tx,
  keys: readonly string[],
  { reserved, cost }: { readonly reserved: number; readonly cost: number },
): Promise<void> {
  for (const key of keys.toSorted()) await settle.run(tx, { key, reserved, cost });
}

const settle = prepared((db, of: QueryParams<{ key: string; reserved: number; cost: number }>) =>
  db
    .updateTable('budgets')
    .set((eb) => ({ reserved: eb('reserved', '-', of.reserved), spent: eb('spent', '+', of.cost) }))
    .where('key', '=', of.key),
);

function inOrder(limits: readonly BudgetLimit[]): readonly BudgetLimit[] {
  return limits.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}
