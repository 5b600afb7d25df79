/**
 * A run that waits for an outside result is parked until an expiry. Its lane has no holder but keeps the run, so that
 * no other run begins. The lane's lease expires together with the wait; the sweep then finds the lane, and the claim
 * ends the wait. Cancelling the run, or settling its last call, ends the wait earlier.
 */

import type { Settlement } from '#contracts/tool.ts';
import { endOpenQuestions } from '../approvals/call-approval.ts';
import type { StepTx, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { findRow } from '../base/row-access.ts';
import { giveUpLease, type Lane } from '../rows/lane.ts';
import { markCancelled, unparkRun } from '../rows/run.ts';
import { endCall, hasWaitingCall, type StoredResult } from '../rows/tool-call.ts';

/** Says whether the lane's run waits for an outside result. A lane with a holder has no such run. */
export async function isParked(tx: Tx, { runId, holder }: Lane): Promise<boolean> {
  if (runId === null || holder !== null) return false;
  const run = await findRow(tx, 'runs', runId, ['state']);
  return run?.state === 'parked';
}

/** Lets the lane's run be claimed and continue; false if it isn't parked. The caller holds the lane's lock. */
export async function unpark(tx: Tx, lane: Lane, effects: Pick<Effects, 'wakes'>): Promise<boolean> {
  if (lane.runId === null || !(await unparkRun(tx, lane.runId))) return false;
  await giveUpLease(tx, lane.key, tx.now);
  effects.wakes.push({ laneKey: lane.key, class: lane.class, delayMs: 0 });
  return true;
}

/**
 * Asks the lane's run to stop; the first reason stays. A parked run is claimed once more, to end it, and nobody needs to
 * answer what it asked. The caller holds the lane's lock, because the step that parks a run could miss a flag set
 * without it.
 */
export async function cancelRun(
  tx: StepTx,
  lane: Lane,
  {
    reason,
    effects,
  }: { readonly reason: string; readonly effects: Pick<Effects, 'cancels' | 'deliveries' | 'wakes'> },
): Promise<void> {
  if (lane.runId === null) return;
  await markCancelled(tx, lane.runId, reason);
  effects.cancels.push({ runId: lane.runId, reason });
  if (await unpark(tx, lane, effects)) await endOpenQuestions(tx, lane.runId, 'void', effects);
}

type CallAnswer = {
  readonly runId: string;
  readonly callId: string;
  /** Returns the result, for a tool of that name. */
  resultFor(tool: string): Omit<StoredResult, 'callId'>;
};

/**
 * Writes the result of a waiting call into its reserved place, and lets the run continue if this was the last one. The
 * call is the idempotency key: an existing result is never overwritten, and a run that was asked to stop answers its
 * calls itself. The caller holds the lane's lock.
 */
export async function settleCall(
  tx: Tx,
  lane: Lane,
  { runId, callId, resultFor }: CallAnswer,
  effects: Pick<Effects, 'wakes'>,
): Promise<Settlement> {
  const call = await tx.db
    .selectFrom('toolCalls')
    .innerJoin('runs', 'runs.id', 'toolCalls.runId')
    .select(['toolCalls.messageId', 'toolCalls.name', 'toolCalls.state'])
    .select(['runs.cancelReason', 'runs.state as runState'])
    .where('toolCalls.runId', '=', runId)
    .where('toolCalls.callId', '=', callId)
    .executeTakeFirst();
  if (!call) return 'unknown-call';
  if (call.state === 'done') return 'settled-before';
  if (call.state === 'pending') return 'not-started';
  if (call.runState === 'finished' || call.cancelReason !== null) return 'cancelled';
  await endCall(tx, call.messageId, { ...resultFor(call.name), callId });
  const mayContinue = lane.runId === runId && !(await hasWaitingCall(tx, runId));
  if (mayContinue) await unpark(tx, lane, effects);
  return 'settled';
}
