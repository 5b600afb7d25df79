import type { MessagePart } from '#contracts/message.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Settlement } from '#contracts/tool.ts';
import { askAboutCalls, type CallQuestions } from '../approvals/call-approval.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { json } from '../base/json.ts';
import { findRow, readRow } from '../base/row-access.ts';
import { isChildLane, readChildIn } from '../children/child.ts';
import { wakeNext } from '../children/class-room.ts';
import { insertNotice } from '../delivery/part.ts';
import type { BudgetRefusal } from '../money/budget.ts';
import { chargeCost, closeModelCalls, type ModelCallEnd } from '../money/model-call.ts';
import { giveUpLease, type Lane, lockLane, lockLaneAt, raiseEpoch } from '../rows/lane.ts';
import { pauseRun, type RunFence } from '../rows/run.ts';
import { awaitCalls } from '../rows/tool-call.ts';
import { settleCall } from '../waits/parked.ts';
import { readSteered } from './steer.ts';

/** A run to park, and its longest wait. */
export type ParkInput = RunFence & {
  /** Reason for waiting, for the chat page and the log. */
  readonly reason: string;
  /** How long the run has worked in total, ms. */
  readonly workedMs: number;
  /** The wait expires after this long without an answer, ms; at most 30 days. */
  readonly waitMs: number;
};

/** Limits every wait, since one that a person has forgotten delays all later senders in the lane. */
const longestParkMs = 30 * 86_400_000;

/**
 * `given-back`: there is nothing to wait for, because its calls were settled or it was asked to stop before this step.
 * The lane is then free to be claimed, and the run continues or ends.
 */
export type ParkOutcome = { readonly kind: 'parked' } | { readonly kind: 'given-back' };

/** Adds the effects that are due, since a parked sub-agent's slot goes to another one. */
export type ParkResult = ParkOutcome & { readonly effects: Effects };

/**
 * Step 8: parks the run, without a holder, until its started calls are settled or `waitMs` have passed; meanwhile its
 * clock is stopped. Its next claim doesn't count as a failed attempt. A settlement either comes before this step and is
 * found here, or comes after it and wakes the lane. A repeat is rejected as stale: having parked the run, the caller no
 * longer owns it.
 */
export const parkRun: StoreCommand<ParkInput, ParkResult> = {
  name: 'parkRun',
  run: async (tx, input) => {
    const { laneKey, epoch, runId } = input;
    const lane = await lockLaneAt(tx, laneKey, epoch);
    const run = await readRow(tx, 'runs', runId, ['cancelReason']);
    const waits = run.cancelReason === null && (await awaitCalls(tx, runId));
    return leaveParked(tx, lane, { ...input, waits, effects: noEffects() });
  },
};

/** A run to park until a person has decided about its calls. */
export type AskInput = Omit<ParkInput, 'waitMs'> & Omit<CallQuestions, 'effects' | 'isInTimeline'>;

/**
 * Asks about the run's calls and parks it until they are decided or the first question expires, in one transaction: no
 * question is ever without a run that waits for it, and no run waits for a question that nobody was asked. A repeat is
 * rejected as stale.
 */
export const parkForApproval: StoreCommand<AskInput, ParkResult> = {
  name: 'parkForApproval',
  run: async (tx, input) => {
    const { laneKey, epoch, runId } = input;
    const lane = await lockLaneAt(tx, laneKey, epoch);
    const run = await readRow(tx, 'runs', runId, ['cancelReason']);
    const effects = noEffects();
    const child = isChildLane(laneKey) ? await readChildIn(tx, laneKey) : undefined;
    const spawnRoute = child?.route == null ? undefined : json.route(child.route);
    const asking = {
      ...{ ...input, effects, isInTimeline: child === undefined },
      route: input.route ?? spawnRoute,
    };
    const expiresAt = run.cancelReason === null ? await askAboutCalls(tx, lane, asking) : undefined;
    const waits = expiresAt !== undefined;
    return leaveParked(tx, lane, { ...input, waitMs: (expiresAt ?? tx.now) - tx.now, waits, effects });
  },
};

/** Releases the run and its lane until the wait is settled or expires. */
async function leaveParked(
  tx: Tx,
  lane: Lane,
  input: ParkInput & {
    /** False if there is nothing to wait for. */
    readonly waits: boolean;
    readonly effects: Effects;
    /** As in `RunPause`. */
    readonly budgetWait?: string;
  },
): Promise<ParkResult> {
  const { runId, epoch, reason, workedMs, waitMs, budgetWait, waits, effects } = input;
  const pause = { id: runId, parkReason: reason, workedMs, ...(budgetWait !== undefined && { budgetWait }) };
  await pauseRun(tx, pause, waits);
  await raiseEpoch(tx, lane.key, epoch + 1);
  // A plugin's wait may be fractional, which PostgreSQL doesn't accept as a time.
  const parkedUntil = tx.now + Math.ceil(Math.min(waitMs, longestParkMs));
  await giveUpLease(tx, lane.key, waits ? parkedUntil : tx.now);
  if (waits) await wakeNext(tx, lane, effects);
  return { kind: waits ? 'parked' : 'given-back', effects };
}

/** Reads the name of a run's call, which its result carries; undefined if there is no such call. */
export const readStartedCall: StoreQuery<
  { readonly runId: string; readonly callId: string },
  string | undefined
> = {
  query: 'readStartedCall',
  run: async (tx, { runId, callId }) => {
    const call = await tx.db
      .selectFrom('toolCalls')
      .select('name')
      .where('runId', '=', runId)
      .where('callId', '=', callId)
      .executeTakeFirst();
    return call?.name;
  },
};

export type SettleResult = {
  readonly settlement: Settlement;
  /** The run's lane; undefined if there is no such run. */
  readonly laneKey: string | undefined;
  readonly effects: Effects;
};

/** Settles a run's call, looking up and locking its lane; see `settleCall`. */
export const settleParkedCall: StoreCommand<
  {
    readonly runId: string;
    readonly callId: string;
    readonly isError: boolean;
    /** The parts of the result's own message. */
    readonly parts: readonly MessagePart[];
  },
  SettleResult
> = {
  name: 'settleParkedCall',
  run: async (tx, { runId, callId, ...result }) => {
    const effects = noEffects();
    const seen = await findRow(tx, 'runs', runId, ['laneKey']);
    const lane = seen && (await lockLane(tx, seen.laneKey));
    if (!lane) return { settlement: 'unknown-call', laneKey: undefined, effects };
    const settlement = await settleCall(tx, lane, { runId, callId, resultFor: () => result }, effects);
    return { settlement, laneKey: lane.key, effects };
  },
};

type BudgetParking = ParkInput & {
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
