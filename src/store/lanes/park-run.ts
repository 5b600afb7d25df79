import type { MessagePart } from '#contracts/message.ts';
import type { Settlement } from '#contracts/tool.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { findRow, readRow } from '../base/row-by-key.ts';
import { wakeNext } from '../children/class-room.ts';
import { awaitCalls } from '../rows/call-states.ts';
import { giveUpLease, raiseEpoch } from '../rows/lane-leases.ts';
import { type Lane, lockLane, lockLaneAt } from '../rows/lane-row.ts';
import type { RunFence } from '../rows/run-fence.ts';
import { pauseRun } from '../rows/run-states.ts';
import { settleCall } from '../waits/settle-call.ts';

/** A run that is to wait, and for how long at most. */
export type ParkInput = RunFence & {
  /** Reason for waiting, for the page and the log. */
  readonly reason: string;
  /** How long the run has worked in all, ms. */
  readonly workedMs: number;
  /** After so long without an answer the wait expires, ms; at most 30 days. */
  readonly waitMs: number;
};

/** Limits every wait: one that a person has forgotten delays all later senders in the lane. */
const longestParkMs = 30 * 86_400_000;

/**
 * `given-back`: there is nothing to wait for, since its calls were settled, or it was asked to stop,
 * before this step. The lane is then free to be claimed, and the run goes on, or ends.
 */
export type ParkOutcome = { readonly kind: 'parked' } | { readonly kind: 'given-back' };

/** With `effects`: the place of a sub-agent that waits is another's. */
export type ParkResult = ParkOutcome & { readonly effects: Effects };

/**
 * Step 8: the run waits for its started calls, without holder, until `waitMs` are over, and its clock
 * stops. Its next claim is no failed attempt. A settlement comes before this step and is found here, or after it
 * and wakes the lane. A repeat is refused as stale: who has parked a run has no right to it any more.
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

type ParkedLaneInput = ParkInput & {
  /** False: there is nothing to wait for. */
  readonly waits: boolean;
  readonly effects: Effects;
  /** As in `RunPause`. */
  readonly budgetWait?: string;
};

/** Lets go of the run and its lane, until the wait ends or is over. */
export async function leaveParked(
  tx: Tx,
  lane: Lane,
  { runId, epoch, reason, workedMs, waitMs, budgetWait, waits, effects }: ParkedLaneInput,
): Promise<ParkResult> {
  const pause = { id: runId, parkReason: reason, workedMs, ...(budgetWait !== undefined && { budgetWait }) };
  await pauseRun(tx, pause, waits);
  await raiseEpoch(tx, lane.key, epoch + 1);
  // A plugin's wait may be a fraction, which PostgreSQL takes for no time.
  const parkedUntil = tx.now + Math.ceil(Math.min(waitMs, longestParkMs));
  await giveUpLease(tx, lane.key, waits ? parkedUntil : tx.now);
  if (waits) await wakeNext(tx, lane, effects);
  return { kind: waits ? 'parked' : 'given-back', effects };
}

/** The name of a run's call, which its result carries; undefined when there is no such call. */
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

export type SettleInput = {
  readonly runId: string;
  readonly callId: string;
  readonly isError: boolean;
  /** The parts of the result's own message. */
  readonly parts: readonly MessagePart[];
};

export type SettleResult = {
  readonly settlement: Settlement;
  /** The lane of the run, if there is such a run. */
  readonly laneKey: string | undefined;
  readonly effects: Effects;
};

/** Settles a call of a run wherever its lane is; see `settleCall`. */
export const settleParkedCall: StoreCommand<SettleInput, SettleResult> = {
  name: 'settleParkedCall',
  run: async (tx, { parts, ...answer }) => {
    const effects = noEffects();
    const { runId } = answer;
    const seen = await findRow(tx, 'runs', runId, ['laneKey']);
    const lane = seen && (await lockLane(tx, seen.laneKey));
    if (!lane) return { settlement: 'unknown-call', laneKey: undefined, effects };
    const settlement = await settleCall(tx, lane, { ...answer, partsFor: () => parts }, effects);
    return { settlement, laneKey: lane.key, effects };
  },
};
