import { ParleyError } from '#contracts/errors.ts';
import { openAlert } from '../alerts/note-alert.ts';
import type { StoreCommand } from '../base/command.ts';
import { lockLaneAt } from '../rows/lane-row.ts';
import type { RunFence } from '../rows/run-fence.ts';
import { type BudgetLimit, type BudgetRefusal, reserveBudgets } from './budgets.ts';
import {
  chargeCost,
  closeModelCalls,
  dropModelCall,
  type ModelCallEnd,
  type NewModelCall,
  openNewModelCall,
} from './model-calls.ts';

export type ReserveInput = RunFence & {
  /** Its `reserved` amount is reserved in each of the budgets. */
  readonly call: NewModelCall & { readonly reserved: number };
  readonly limits: readonly BudgetLimit[];
  /** Ends of earlier attempts. */
  readonly ends: readonly ModelCallEnd[];
};

/** Whether the call may be sent. */
export type Reservation =
  | { readonly kind: 'open' }
  | { readonly kind: 'spent'; readonly refusal: BudgetRefusal };

/**
 * Opens an attempt's row and reserves its upper bound in every budget that applies, before the call is sent. If one of
 * them has no room, nothing is reserved, and the owner is alerted if that budget is spent. The call's id makes it safe
 * to repeat. Throws `stale_epoch`, also for a run that has ended.
 */
export const reserveCall: StoreCommand<ReserveInput, Reservation> = {
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
