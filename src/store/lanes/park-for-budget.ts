import type { ReplyRoute } from '#contracts/route.ts';
import type { StoreCommand } from '../base/command.ts';
import { noEffects } from '../base/effects.ts';
import { insertNotice } from '../delivery/insert-notice.ts';
import type { BudgetRefusal } from '../money/budgets.ts';
import { chargeCost, closeModelCalls, type ModelCallEnd } from '../money/model-calls.ts';
import { lockLaneAt } from '../rows/lane-row.ts';
import { leaveParked, type ParkInput, type ParkResult } from './park-run.ts';
import { readSteered } from './steer.ts';

export type BudgetParking = ParkInput & {
  readonly refusal: BudgetRefusal;
  /** Every model call that isn't closed yet. */
  readonly modelCalls: readonly ModelCallEnd[];
  /** Notifies the person, once per run and budget; absent if nobody is notified. */
  readonly notice: { readonly route: ReplyRoute; readonly text: string } | undefined;
};

/**
 * Parks the run until its budget has room for the refused call, for at most `waitMs`; the sweep or a stop ends the
 * wait. If room appeared before this step, the next look or sweep finds it. A repeat is rejected as stale.
 */
export const parkForBudget: StoreCommand<BudgetParking, ParkResult> = {
  name: 'parkForBudget',
  run: async (tx, input) => {
    const { laneKey, epoch, runId, refusal, modelCalls, notice } = input;
    const lane = await lockLaneAt(tx, laneKey, epoch);
    const effects = noEffects();
    const waits = (await readSteered(tx, runId)).cancelReason === undefined;
    const left = await leaveParked(tx, lane, {
      ...input,
      budgetWait: JSON.stringify(refusal),
      waits,
      effects,
    });
    await chargeCost(tx, lane.sessionId, await closeModelCalls(tx, runId, modelCalls));
    if (!waits || notice === undefined) return left;
    const key = `${runId}:${refusal.key}`;
    effects.deliveries.push(await insertNotice(tx, { ...notice, key, laneKey, runId }));
    return left;
  },
};
