/**
 * Writes what budgets have spent and reserved; no other file does. One statement checks and reserves a call, so that
 * two calls racing for the last dollar can't both get it: PostgreSQL checks the row again under its lock, and SQLite
 * has one writer. Callers hold their lane's lock; keys are locked in order, after sessions and before conversations.
 */
import { type SqlBool, sql } from 'kysely';
import type { BudgetScope } from '#contracts/model.ts';
import { closeAlert } from '../alerts/alert.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { ensureRow } from '../base/row-access.ts';

/** A budget that a call counts against, and its configured limit in micro-dollars. */
export type BudgetLimit = {
  readonly scope: BudgetScope;
  readonly key: string;
  readonly limit: number;
  /** When the day that it applies to ends, ms since the epoch; absent: it isn't a daily budget. */
  readonly endsAt?: number;
};

/** A budget without room for a call that needs this many micro-dollars. */
export type BudgetRefusal = BudgetLimit & {
  readonly needs: number;
  /** True if only the reservations of other calls leave no room; they will return some of it. */
  readonly isHeld: boolean;
};

/** Reserves the amount in every budget, or in none if one has no room, and then returns that one. */
export async function reserveBudgets(
  tx: Tx,
  limits: readonly BudgetLimit[],
  amount: number,
): Promise<BudgetRefusal | undefined> {
  const held: BudgetLimit[] = [];
  for (const budget of inOrder(limits)) {
    const { key, limit } = budget;
    await openBudget(tx, key);
    if ((await holdIfRoom.run(tx, { key, limit, amount })) === 0) {
      for (const { key } of held) await settle.post(tx, { key, reserved: amount, cost: 0, now: tx.now });
      const { spent, raisedTo } = await budgetByKey.one(tx, { key });
      return { ...budget, needs: amount, isHeld: spent + amount <= (raisedTo ?? limit) };
    }
    held.push(budget);
  }
  return undefined;
}

async function openBudget(tx: Tx, key: string): Promise<void> {
  await ensureRow(tx, 'budgets', { key, spent: 0, reserved: 0, touchedAt: tx.now });
}

const holdIfRoom = prepared((db, of: QueryParams<{ key: string; limit: number; amount: number }>) =>
  db
    .updateTable('budgets')
    .set((eb) => ({ reserved: eb('reserved', '+', of.amount) }))
    .where('key', '=', of.key)
    .where(sql<boolean>`spent + reserved + ${of.amount} <= coalesce("raisedTo", ${of.limit})`),
);

const budgetByKey = prepared((db, of: QueryParams<{ key: string }>) =>
  db.selectFrom('budgets').selectAll().where('key', '=', of.key),
);

/** Replaces a call's reservation with its actual cost. */
export async function settleBudgets(
  tx: Tx,
  keys: readonly string[],
  amounts: { readonly reserved: number; readonly cost: number },
): Promise<void> {
  for (const key of keys.toSorted()) await settle.post(tx, { key, ...amounts, now: tx.now });
}

type BudgetSettlement = { key: string; reserved: number; cost: number; now: number };

const settle = prepared((db, of: QueryParams<BudgetSettlement>) =>
  db
    .updateTable('budgets')
    .set((eb) => ({
      reserved: eb('reserved', '-', of.reserved),
      spent: eb('spent', '+', of.cost),
      touchedAt: of.now,
    }))
    .where('key', '=', of.key),
);

/** Overrides the configured limit, micro-dollars. Repeating it changes nothing. */
export async function raiseBudget(tx: Tx, { key, limit }: Omit<BudgetLimit, 'scope'>): Promise<void> {
  await openBudget(tx, key);
  await tx.db
    .updateTable('budgets')
    .set({ raisedTo: limit, touchedAt: tx.now })
    .where('key', '=', key)
    .execute();
}

/** Amounts of one budget, micro-dollars. */
export type BudgetState = { readonly spent: number; readonly reserved: number; readonly limit: number };

/** Reads the budgets that the limits name; one that nothing has counted against is empty. */
export const readBudgets: StoreQuery<
  { readonly limits: readonly BudgetLimit[] },
  readonly (BudgetLimit & BudgetState)[]
> = {
  query: 'readBudgets',
  run: async (tx, { limits }) => {
    const all: (BudgetLimit & BudgetState)[] = [];
    for (const budget of limits) {
      const row = await budgetByKey.first(tx, { key: budget.key });
      const { spent = 0, reserved = 0, raisedTo = null } = row ?? {};
      all.push({ ...budget, spent, reserved, limit: raisedTo ?? budget.limit });
    }
    return all;
  },
};

/** Says whether a call has ever counted against the budget, or it was raised. */
export const hasBudget: StoreQuery<{ readonly key: string }, boolean> = {
  query: 'hasBudget',
  run: async (tx, { key }) => (await budgetByKey.first(tx, { key })) !== undefined,
};

const dayMs = 86_400_000;
/** How long after its last call a budget may be deleted, ms; by then its day has ended in every time zone. */
const keptMs = 2 * dayMs;

/**
 * Deletes budgets that calls can no longer count against: of past days, of ended runs and trees, and of sessions that
 * were replaced. Returns how many; repeating it deletes the rest.
 */
export const deleteOldBudgets: StoreCommand<{ readonly limit: number }, number> = {
  name: 'deleteOldBudgets',
  run: async (tx, { limit }) => {
    const since = tx.now - keptMs;
    const old = tx.db
      .selectFrom('budgets')
      .select('key')
      .where('reserved', '=', 0)
      .where('touchedAt', '<=', since)
      .where((eb) => eb.not(isInUse('budgets.key', since)))
      .limit(limit);
    const { numDeletedRows } = await tx.db.deleteFrom('budgets').where('key', 'in', old).executeTakeFirst();
    return Number(numDeletedRows);
  },
};

/** Matches budgets that calls may still count against. A key is its scope and a row's id, such as `run:<id>`. */
function isInUse(column: 'budgets.key' | 'ownerNotices.subject', since: number) {
  const key = sql.ref(column);
  return sql<SqlBool>`(
    exists (select 1 from runs where runs.id = substr(${key}, 5) and runs.state <> 'finished')
    or exists (select 1 from runs where runs.id = substr(${key}, 6) and runs.state <> 'finished')
    or exists (select 1 from trees where trees.id = substr(${key}, 6) and trees."deadlineAt" > ${since})
    or exists (select 1 from sessions where sessions.id = substr(${key}, 9) and sessions."endedAt" is null))`;
}

/**
 * Ends alerts whose budgets no longer need to be raised, because their day has ended, or because their run, tree or
 * session has ended and the owner has had a day to read the alert. Safe to repeat.
 */
export const endBudgetAlerts: StoreCommand<Record<never, never>, void> = {
  name: 'endBudgetAlerts',
  run: async (tx) => {
    const told = await tx.db
      .selectFrom('ownerNotices')
      .select(['subject', 'details', 'lastAt'])
      .select((eb) =>
        eb.case().when(isInUse('ownerNotices.subject', tx.now)).then(1).else(0).end().as('inUse'),
      )
      .where('kind', '=', 'budget-spent')
      .where('endedAt', 'is', null)
      .where('isPending', '=', 0)
      .execute();
    for (const { subject, details, lastAt, inUse } of told) {
      const { endsAt } = json.values(details);
      const isOver =
        endsAt === undefined ? Number(inUse) === 0 && lastAt + dayMs <= tx.now : Number(endsAt) <= tx.now;
      if (isOver) await closeAlert(tx, { kind: 'budget-spent', subject });
    }
  },
};

function inOrder(limits: readonly BudgetLimit[]): readonly BudgetLimit[] {
  return limits.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}
