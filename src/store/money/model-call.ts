/**
 * The ledger of model calls, and its only writer: `open`, then once `settled`, `unknown` or `void`.
 *
 * A row is opened by a commit before its call is sent. For the first attempt of a turn, the claim, the boundary after a
 * tool turn, or the answer that a steer extends opens it, so it needs no extra commit; every other attempt, and each
 * attempt under a budget, uses `reserveCall`. The row is closed in the commit that stores the call's output, or that
 * ends or hands over its run. A process killed in between leaves it open. The next claim of the lane, or the step that
 * gives the run up, then closes it as `unknown` at its upper bound, since the provider may have counted it. Ids contain
 * the claim's epoch, so a repeated step finds the row that it has written; an existing end stays.
 */
import { sql } from 'kysely';
import type { CallEnd, CallRate } from '#contracts/call-ledger.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { ModelPurpose, Usage } from '#contracts/model.ts';
import { openAlert } from '../alerts/alert.ts';
import type { StoreCommand, Tx } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, ensureRow, insertNewRow, plus } from '../base/row-access.ts';
import { lockLaneAt } from '../rows/lane.ts';
import type { RunFence } from '../rows/run.ts';
import { type BudgetLimit, type BudgetRefusal, reserveBudgets, settleBudgets } from './budget.ts';

/** An attempt that is about to be sent. */
export type NewModelCall = {
  readonly id: string;
  readonly runId: string;
  readonly sessionId: string;
  readonly purpose: ModelPurpose;
  readonly rate: CallRate;
  /** Upper bound of its cost, micro-dollars; absent: computed from the rate if its cost turns out to be unknown. */
  readonly reserved?: number;
  readonly budgetKeys?: readonly string[];
};

/** Opens the row; an existing row stays as it is. */
export async function openModelCall(tx: Tx, call: NewModelCall): Promise<void> {
  await ensureRow(tx, 'modelCalls', rowOf(tx, call));
}

/** Does the same; returns false when the row exists, which means that this is a repeat. */
async function openNewModelCall(tx: Tx, call: NewModelCall): Promise<boolean> {
  return insertNewRow(tx, 'modelCalls', rowOf(tx, call));
}

function rowOf(tx: Tx, call: NewModelCall) {
  const { id, runId, sessionId, purpose, rate, reserved, budgetKeys } = call;
  return {
    ...{ id, runId, sessionId, purpose, ...noTokens },
    state: 'open',
    provider: rate.provider,
    model: rate.model,
    reserved: reserved ?? 0,
    budgetKeys: budgetKeys ? JSON.stringify(budgetKeys) : null,
    rate: reserved === undefined ? JSON.stringify(rate) : null,
    ...{ cost: 0, latencyMs: 0, withoutTools: 0, openedAt: tx.now, at: tx.now },
  } as const;
}

const noTokens: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** Removes the row of a call that must not be sent, in the transaction that opened it. */
async function dropModelCall(tx: Tx, { runId, id }: Pick<NewModelCall, 'runId' | 'id'>): Promise<void> {
  await tx.db.deleteFrom('modelCalls').where('runId', '=', runId).where('id', '=', id).execute();
}

/** Returns the id of a claim's n-th attempt. */
export function callIdOf(epoch: number, n: number): string {
  return `${epoch}.${n}`;
}

/** How a call ended, for its row. */
export type ModelCallEnd = {
  readonly id: string;
  readonly latencyMs: number;
  readonly end: Exclude<CallEnd, { readonly state: 'stopped' }>;
  /** Charge of a call with an unknown end, micro-dollars; absent: its bound, computed from its row. */
  readonly bound?: number;
  readonly doubt?: CallDoubt;
};

/** Why a call's count isn't its provider's: it was stopped, or had more tokens than the request can have. */
export type CallDoubt = 'stopped' | 'miscounted';

/** Cost of the closed calls, micro-dollars, and the usage of the last one that was counted or estimated. */
export type Spent = { readonly cost: number; readonly usage: Usage | undefined };

/** Open calls of a run by id, with the amounts that they reserve in budgets. */
export type OpenCalls = ReadonlyMap<
  string,
  { readonly reserved: number; readonly budgetKeys: string | null }
>;

/** Reads the run's open calls. The caller holds the lane's lock, so they stay open until it closes them. */
async function readOpenCalls(tx: Tx, runId: string): Promise<OpenCalls> {
  const rows = await openCalls.all(tx, { runId });
  return new Map(rows.map(({ id, ...held }) => [id, held]));
}

const openCalls = prepared((db, of: QueryParams<{ runId: string }>) =>
  db
    .selectFrom('modelCalls')
    .select(['id', 'reserved', 'budgetKeys'])
    .where('runId', '=', of.runId)
    .where('state', '=', 'open'),
);

/**
 * Closes those of the calls that are still open, and settles their reservations. The caller charges the session.
 * `known`: the run's open calls, if the caller has read them.
 */
export async function closeModelCalls(
  tx: Tx,
  runId: string,
  ends: readonly ModelCallEnd[],
  known?: OpenCalls,
): Promise<Spent> {
  if (ends.length === 0) return { cost: 0, usage: undefined };
  const open = new Map(known ?? (await readOpenCalls(tx, runId)));
  const bounds = await readBounds(tx, runId, ends);
  let [cost, usage]: [number, Usage | undefined] = [0, undefined];
  for (const { id, latencyMs, end, bound, doubt } of ends) {
    const price = end.state === 'settled' ? end.cost : (bound ?? bounds.get(id) ?? 0);
    const said = end.state === 'void' ? undefined : end;
    const [model, counted] = [said?.model ?? null, said?.usage ?? noTokens];
    const withoutTools = said?.withoutTools ? 1 : 0;
    const closing = { id, runId, state: end.state, model, cost: price, latencyMs, withoutTools, now: tx.now };
    const cacheMiss = said?.cacheMiss;
    const notes = doubt || cacheMiss ? JSON.stringify({ doubt, cacheMiss }) : null;
    const values = { ...closing, ...counted, notes };
    const row = open.get(id);
    if (!open.delete(id) || row === undefined) continue;
    await closeRow.post(tx, values);
    if (end.state !== 'void') await addToUsage.post(tx, { id, runId });
    if (row.budgetKeys !== null) await settleRow(tx, row.budgetKeys, { reserved: row.reserved, cost: price });
    cost += price;
    usage = said?.usage ?? usage;
  }
  return { cost, usage };
}

type CallEndRow = Usage & {
  id: string;
  runId: string;
  state: 'settled' | 'unknown' | 'void';
  model: string | null;
  cost: number;
  latencyMs: number;
  withoutTools: number;
  /** Replaces the rate, which only an open call needs. */
  notes: string | null;
  now: number;
};

const closeRow = prepared((db, of: QueryParams<CallEndRow>) =>
  db
    .updateTable('modelCalls')
    .set((eb) => ({
      state: of.state,
      model: eb.fn.coalesce(of.model, 'model'),
      inputTokens: of.inputTokens,
      outputTokens: of.outputTokens,
      cacheReadTokens: of.cacheReadTokens,
      cacheWriteTokens: of.cacheWriteTokens,
      cost: of.cost,
      latencyMs: of.latencyMs,
      withoutTools: of.withoutTools,
      rate: eb.fn.coalesce(of.notes, 'rate'),
      at: of.now,
    }))
    .where('runId', '=', of.runId)
    .where('id', '=', of.id)
    .where('state', '=', 'open'),
);

/** Adds the call that has just ended to its session's totals, so that reading those doesn't scan the calls. */
const addToUsage = prepared((db, of: QueryParams<{ id: string; runId: string }>) =>
  db
    .insertInto('sessionUsage')
    .columns(['sessionId', 'model', 'purpose', 'calls', 'unsure', ...sums])
    .expression((eb) =>
      eb
        .selectFrom('modelCalls')
        .select(['sessionId', 'model', 'purpose'])
        .select([sql.lit(1).as('calls'), sql`case when state = 'unknown' then 1 else 0 end`.as('unsure')])
        .select(sums)
        .where('runId', '=', of.runId)
        .where('id', '=', of.id),
    )
    .onConflict((conflict) =>
      conflict
        .columns(['sessionId', 'model', 'purpose'])
        .doUpdateSet((eb) =>
          Object.fromEntries(
            (['calls', 'unsure', ...sums] as const).map((sum) => [
              sum,
              eb(`sessionUsage.${sum}`, '+', eb.ref(`excluded.${sum}`)),
            ]),
          ),
        ),
    ),
);

const sums = ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens', 'cost'] as const;

async function settleRow(
  tx: Tx,
  budgetKeys: string,
  amounts: { readonly reserved: number; readonly cost: number },
): Promise<void> {
  // Written by `openModelCall`.
  await settleBudgets(tx, JSON.parse(budgetKeys) as readonly string[], amounts);
}

/** Closes the run's open calls as `unknown` and charges their sessions, since no process works on them any more. */
export async function closeLostCalls(tx: Tx, runId: string): Promise<void> {
  const open = await tx.db
    .selectFrom('modelCalls')
    .select(['id', 'sessionId', 'openedAt'])
    .where('runId', '=', runId)
    .where('state', '=', 'open')
    .execute();
  for (const sessionId of new Set(open.map((call) => call.sessionId))) {
    const lost = open
      .filter((call) => call.sessionId === sessionId)
      .map(({ id, openedAt }): ModelCallEnd => {
        return { id, latencyMs: Math.max(0, tx.now - openedAt), end: { state: 'unknown' } };
      });
    await chargeCost(tx, sessionId, await closeModelCalls(tx, runId, lost));
  }
}

/** Adds to the session what was spent on calls other than the answer. */
export async function chargeCost(tx: Tx, sessionId: string, { cost }: Spent): Promise<void> {
  if (cost > 0) await changeRow(tx, 'sessions', sessionId, { cost: plus(cost) });
}

/**
 * Estimated tokens of a call's system prompt, tools and images, which no row contains. It isn't an upper bound, since
 * long bootstrap files and many images take more. Only used for a call without a reservation whose process died; a live
 * process computes the bound from its request.
 */
const promptOverhead = 30_000;

/** Computes upper bounds, by id, for the calls with an unknown cost, from their rows in one read. */
async function readBounds(
  tx: Tx,
  runId: string,
  ends: readonly ModelCallEnd[],
): Promise<ReadonlyMap<string, number>> {
  const ids = ends.flatMap(({ id, end, bound }) =>
    end.state === 'unknown' && bound === undefined ? [id] : [],
  );
  if (ids.length === 0) return new Map();
  const rows = await tx.db
    .selectFrom('modelCalls')
    .select(['id', 'reserved', 'rate'])
    .select((eb) => {
      const said = eb
        .selectFrom('transcript')
        .select(sql<number>`cast(coalesce(sum(octet_length(parts)), 0) as bigint)`.as('bytes'))
        .whereRef('transcript.sessionId', '=', 'modelCalls.sessionId');
      // The bound of a call depends on its session's transcript only if it has no reservation.
      return eb.case().when('rate', 'is', null).then(0).else(said).end().as('bytes');
    })
    .where('runId', '=', runId)
    .where('id', 'in', ids)
    .execute();
  return new Map(rows.map(({ id, ...row }) => [id, boundOfRow(row)]));
}

type BoundRow = { readonly reserved: number; readonly rate: string | null; readonly bytes: number | null };

function boundOfRow({ reserved, rate, bytes }: BoundRow): number {
  if (rate === null) return reserved;
  // Written by `openModelCall`.
  const terms = JSON.parse(rate) as CallRate;
  const prompt = Math.min(terms.promptTokens, Number(bytes) + promptOverhead);
  return boundOf(terms, { prompt, answer: terms.answerTokens });
}

/** Returns an upper bound for the cost of a call with such a prompt and answer, micro-dollars. */
export function boundOf(
  rate: CallRate,
  tokens: { readonly prompt: number; readonly answer: number },
): number {
  return Math.ceil((tokens.prompt * rate.input + tokens.answer * rate.output) / 1_000_000);
}

/** Whether the call may be sent. */
type Reservation = { readonly kind: 'open' } | { readonly kind: 'spent'; readonly refusal: BudgetRefusal };

/**
 * Opens an attempt's row and reserves its upper bound in every budget that applies, before the call is sent. If one of
 * them has no room, nothing is reserved, and the owner is alerted if that budget is spent. The call's id makes it safe
 * to repeat. Throws `stale_epoch`, also for a run that has ended.
 */
export const reserveCall: StoreCommand<
  RunFence & {
    /** Its `reserved` amount is reserved in each of the budgets. */
    readonly call: NewModelCall & { readonly reserved: number };
    readonly limits: readonly BudgetLimit[];
    /** Ends of earlier attempts. */
    readonly ends: readonly ModelCallEnd[];
  },
  Reservation
> = {
  name: 'reserveCall',
  run: async (tx, { laneKey, epoch, runId, call, limits, ends }) => {
    const lane = await lockLaneAt(tx, laneKey, epoch);
    // Its run has ended meanwhile, so nothing would close the row.
    if (lane.runId !== runId)
      throw new ParleyError('stale_epoch', `Run ${runId} has ended, so no call is made for it.`);
    await chargeCost(tx, call.sessionId, await closeModelCalls(tx, runId, ends));
    const budgetKeys = limits.map(({ key }) => key);
    const isNew = await openNewModelCall(tx, { ...call, ...(budgetKeys.length > 0 && { budgetKeys }) });
    const refusal = isNew ? await reserveBudgets(tx, limits, call.reserved) : undefined;
    if (refusal === undefined) return { kind: 'open' };
    await dropModelCall(tx, call);
    const { key, scope, isHeld, endsAt } = refusal;
    const values = { scope, ...(endsAt !== undefined && { endsAt: String(endsAt) }) };
    // A missing title is harmless; the next message's sender is notified about the budget.
    if (!isHeld && call.purpose !== 'title')
      await openAlert(tx, { kind: 'budget-spent', subject: key, values });
    return { kind: 'spent', refusal };
  },
};
