import type { MessagePart } from '#contracts/message.ts';
import type { Settlement } from '#contracts/tool.ts';
import type { Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { endCall, hasWaitingCall } from '../rows/call-states.ts';
import type { Lane } from '../rows/lane-row.ts';
import { unpark } from './parked.ts';

export type CallAnswer = {
  readonly runId: string;
  readonly callId: string;
  readonly isError: boolean;
  /** Returns the parts of the result's own message, for a tool of that name. */
  partsFor(tool: string): readonly MessagePart[];
};

/**
 * Writes the result of a waiting call into its reserved place, and lets the run continue if this was the last one. The
 * call is the idempotency key: an existing result is never overwritten, and a run that was asked to stop answers its
 * calls itself. The caller holds the lane's lock.
 */
export async function settleCall(
  tx: Tx,
  lane: Lane,
  { runId, callId, isError, partsFor }: CallAnswer,
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
  await endCall(tx, call.messageId, { callId, isError, parts: partsFor(call.name) });
  const mayContinue = lane.runId === runId && !(await hasWaitingCall(tx, runId));
  if (mayContinue) await unpark(tx, lane, effects);
  return 'settled';
}
