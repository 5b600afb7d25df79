/**
 * Runs that wait for room in a budget. Room appears when somebody raises the budget, or when calls return the unused
 * part of their reservations; the process of such a call looks for them at once, and the sweep finds the rest. A wait for a daily budget ends at midnight, and the next day's is
 * tried. Until then the runs are parked like runs that wait for a result.
 */

import { sql } from 'kysely';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { isOutOfBudget } from '../base/index-predicates.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { findRow } from '../base/row-access.ts';
import type { BudgetLimit, BudgetRefusal } from '../money/budget.ts';
import { lockLane } from '../rows/lane.ts';
import { unpark } from './parked.ts';

/** A run that waits for room, or may continue. */
export type RunOutOfBudget = { readonly runId: string; readonly laneKey: string };

type BudgetWait = RunOutOfBudget & Pick<BudgetRefusal, 'key' | 'limit' | 'needs' | 'isHeld'>;

type Budget = {
  readonly key: string;
  readonly spent: number;
  readonly reserved: number;
  readonly raisedTo: number | null;
};

/** Up to where the waiting runs were read, and how much of each budget they have been given. */
export type WaitPlace = {
  readonly parkedAt: number;
  readonly id: string;
  readonly given: Readonly<Record<string, number>>;
};

/**
 * Reads which of the waiting runs may continue, longest wait first. It reads a page at a time, since all runs of a page
 * may wait for the same budget. While no run waits, it only reads an empty index.
 */
export async function readRunsWithRoom(
  tx: Tx,
  after: WaitPlace | undefined,
): Promise<{ readonly ready: readonly RunOutOfBudget[]; readonly next: WaitPlace | undefined }> {
  const { ready, inVain, next } = await readWaits(tx, after);
  return { ready: [...ready, ...inVain].map(({ runId, laneKey }) => ({ runId, laneKey })), next };
}

/** Reads the same on its own, for runs that needn't wait for the sweep. */
export const readRoom: StoreQuery<
  { readonly after: WaitPlace | undefined },
  Awaited<ReturnType<typeof readRunsWithRoom>>
> = {
  query: 'readRoom',
  run: (tx, { after }) => readRunsWithRoom(tx, after),
};

/** Effect of a budget's new limit on runs that wait for room: `none` waits, some `resume`, or all still `wait`. */
export type RaiseResult = 'none' | 'resume' | 'wait';

/** Returns the effect of new limits of these budgets on waiting runs. */
export async function judgeRaise(tx: Tx, keys: readonly string[]): Promise<RaiseResult> {
  const isOfThem = ({ key }: BudgetWait) => keys.includes(key);
  let isAwaited = false;
  let after: WaitPlace | undefined;
  do {
    const { waiting, ready, next } = await readWaits(tx, after);
    if (ready.some(isOfThem)) return 'resume';
    isAwaited ||= waiting.some(isOfThem);
    after = next;
  } while (after !== undefined);
  return isAwaited ? 'wait' : 'none';
}

type Waits = {
  readonly waiting: readonly BudgetWait[];
  readonly ready: readonly BudgetWait[];
  readonly inVain: readonly BudgetWait[];
  readonly next: WaitPlace | undefined;
};

async function readWaits(tx: Tx, after: WaitPlace | undefined): Promise<Waits> {
  const rows = await outOfBudget.all(tx, { parkedAfter: after?.parkedAt ?? -1, idAfter: after?.id ?? '' });
  const waiting = rows.map(({ id, laneKey, budgetWait }) => ({
    runId: id,
    laneKey,
    ...refusalIn(budgetWait ?? ''),
  }));
  if (waiting.length === 0) return { waiting, ready: [], inVain: [], next: undefined };
  const keys = [...new Set(waiting.map(({ key }) => key))];
  const budgets = await tx.db
    .selectFrom('budgets')
    .select(['key', 'spent', 'reserved', 'raisedTo'])
    .where('key', 'in', keys)
    .execute();
  const { ready, inVain, given } = withRoom(waiting, budgets, after?.given);
  const last = rows.length < atOnce ? undefined : rows.at(-1);
  return { waiting, ready, inVain, next: last && { parkedAt: last.parkedAt ?? 0, id: last.id, given } };
}

const atOnce = 500;

const outOfBudget = prepared((db, of: QueryParams<{ parkedAfter: number; idAfter: string }>) =>
  db
    .selectFrom('runs')
    .select(['id', 'laneKey', 'budgetWait', 'parkedAt'])
    .where(isOutOfBudget())
    .where(sql<boolean>`("parkedAt", "id") > (${of.parkedAfter}, ${of.idAfter})`)
    .orderBy('parkedAt')
    .orderBy('id')
    .limit(atOnce),
);

/**
 * Chooses the runs that may continue, longest wait first, so that no room is given twice. `inVain`: runs that waited
 * for the reservations of others, whose room is spent; they continue too, so that their person is notified. `given`:
 * how much of each budget was given, on earlier pages and on this one. Pure.
 */
export function withRoom<Wait extends BudgetWait>(
  waiting: readonly Wait[],
  budgets: readonly Budget[],
  givenBefore: WaitPlace['given'] = {},
): { readonly ready: readonly Wait[]; readonly inVain: readonly Wait[]; readonly given: WaitPlace['given'] } {
  const given = new Map(Object.entries(givenBefore));
  const ready: Wait[] = [];
  const inVain: Wait[] = [];
  for (const wait of waiting) {
    const { key, limit, needs, isHeld } = wait;
    const budget = budgets.find((each) => each.key === key);
    const most = budget?.raisedTo ?? limit;
    const before = given.get(key) ?? 0;
    const spent = budget?.spent ?? 0;
    if (spent + (budget?.reserved ?? 0) + before + needs <= most) {
      given.set(key, before + needs);
      ready.push(wait);
    } else if (isHeld && spent + needs > most) inVain.push(wait);
  }
  return { ready, inVain, given: Object.fromEntries(given) };
}

/**
 * Says whether a run's wait for this budget, which is over, was in vain. A new day has its own budget, which is tried
 * like any other unless the call needs more than its limit.
 */
export function isWaitExhausted(budgetWait: string | null): boolean {
  if (budgetWait === null) return false;
  const { endsAt, needs, limit } = refusalIn(budgetWait);
  return endsAt === undefined || needs > limit;
}

/** Reads the budget that the lane's run is parked for; undefined when it isn't parked for one. */
export const readBudgetWait: StoreQuery<{ readonly laneKey: string }, BudgetLimit | undefined> = {
  query: 'readBudgetWait',
  run: async (tx, { laneKey }) => {
    const run = await tx.db
      .selectFrom('lanes')
      .innerJoin('runs', 'runs.id', 'lanes.runId')
      .select('runs.budgetWait')
      .where('lanes.key', '=', laneKey)
      .executeTakeFirst();
    return run?.budgetWait ? refusalIn(run.budgetWait) : undefined;
  },
};

function refusalIn(budgetWait: string): BudgetRefusal {
  // Written by `parkForBudget`.
  return JSON.parse(budgetWait) as BudgetRefusal;
}

/** Lets a run continue that waits for room in a budget. Repeating it changes nothing. */
export const resumeWithRoom: StoreCommand<RunOutOfBudget, Effects> = {
  name: 'resumeWithRoom',
  run: async (tx, { runId, laneKey }) => {
    const effects = noEffects();
    const lane = await lockLane(tx, laneKey);
    const run = await findRow(tx, 'runs', runId, ['budgetWait']);
    const waits = run !== undefined && run.budgetWait !== null;
    if (waits && lane?.runId === runId) await unpark(tx, lane, effects);
    return effects;
  },
};
