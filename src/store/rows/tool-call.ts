/**
 * Writes the states of tool calls; no other file does: `pending → started → waiting → done`. The callers hold the
 * lane's lock.
 */

import type { PersistedCall } from '#contracts/hook.ts';
import { isErrorIn, type MessagePart, waitExpired } from '#contracts/message.ts';
import type { StepTx, Tx } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, insertNewRow } from '../base/row-access.ts';
import { appendMessage } from './transcript.ts';

export type NewCall = {
  readonly runId: string;
  readonly messageId: string;
  readonly sessionId: string;
  /** Its position among the calls of the message. */
  readonly ordinal: number;
  readonly callId: string;
  readonly name: string;
  readonly input: string;
};

/** Stores a call and reserves the place of its result. Repeating it changes nothing. */
export async function insertCall(tx: Tx, { sessionId, ...call }: NewCall): Promise<void> {
  const { messageId, ordinal, runId } = call;
  if (!(await insertNewRow(tx, 'toolCalls', { ...call, state: 'pending', isError: 0 }))) return;
  const id = resultIdOf(messageId, ordinal);
  await appendMessage(tx, { id, sessionId, role: 'tool', parts: [], runId, isFinished: false });
}

export type CallOf = { readonly messageId: string; readonly callId: string };

/** Records that the call may take effect from now on. */
export async function startCall(tx: Tx, { messageId, callId }: CallOf): Promise<void> {
  await markStarted.post(tx, { messageId, callId, now: tx.now });
}

const markStarted = prepared((db, of: QueryParams<CallOf & { now: number }>) =>
  db
    .updateTable('toolCalls')
    .set({ state: 'started', startedAt: of.now })
    .where('messageId', '=', of.messageId)
    .where('callId', '=', of.callId)
    .where('state', '=', 'pending'),
);

/** Makes the run's started calls wait for their outside results. Returns whether there are any. */
export async function awaitCalls(tx: Tx, runId: string): Promise<boolean> {
  const { numUpdatedRows } = await tx.db
    .updateTable('toolCalls')
    .set({ state: 'waiting' })
    .where('runId', '=', runId)
    .where('state', 'in', ['started', 'waiting'])
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Says whether a call of the run still waits for its outside result. */
export async function hasWaitingCall(tx: Tx, runId: string): Promise<boolean> {
  const open = await tx.db
    .selectFrom('toolCalls')
    .select('callId')
    .where('runId', '=', runId)
    .where('state', '=', 'waiting')
    .limit(1)
    .executeTakeFirst();
  return open !== undefined;
}

/** Ends the run's calls whose results didn't come in time; the model reads that they expired. */
export async function expireCalls(tx: StepTx, runId: string): Promise<void> {
  const waiting = await tx.db
    .selectFrom('toolCalls')
    .select(['messageId', 'callId', 'name'])
    .where('runId', '=', runId)
    .where('state', '=', 'waiting')
    .execute();
  for (const { messageId, callId, name } of waiting)
    await endCall(tx, messageId, wordResult(tx, { runId, callId, name, content: waitExpired }));
}

type ResultWords = {
  readonly runId: string;
  readonly callId: string;
  /** The tool's name. */
  readonly name: string;
  readonly content: string;
  readonly isError?: boolean;
  readonly source?: PersistedCall['source'];
};

/** Returns a result that a step words itself, an error by default, as hooks have left it. */
export function wordResult(
  tx: Pick<StepTx, 'persist'>,
  { runId, callId, name, content, isError = true, source = 'tool' }: ResultWords,
): StoredResult {
  const data = { tool_call_id: callId, name, content, is_error: isError };
  const given: readonly MessagePart[] = [{ type: 'tool_result', data }];
  const parts = tx.persist?.({ runId, call: { id: callId, name }, source }, given) ?? given;
  return { callId, isError: isErrorIn(parts), parts };
}

/** The result of a tool call as it is stored. */
export type StoredResult = {
  readonly callId: string;
  readonly isError: boolean;
  /** The parts of the result's own message. */
  readonly parts: readonly MessagePart[];
};

/** Writes the result into its reserved place. An existing result is never overwritten. */
export async function endCall(tx: Tx, messageId: string, result: StoredResult): Promise<void> {
  const { callId } = result;
  const parts = JSON.stringify(result.parts);
  const ended = { messageId, callId, result: parts, isError: result.isError ? 1 : 0, now: tx.now };
  const call = await markDone.first(tx, ended);
  if (!call) return;
  await changeRow(tx, 'transcript', resultIdOf(messageId, call.ordinal), {
    parts,
    isFinished: 1,
    updatedAt: tx.now,
  });
}

const markDone = prepared((db, of: QueryParams<CallOf & { result: string; isError: number; now: number }>) =>
  db
    .updateTable('toolCalls')
    .set({ state: 'done', result: of.result, isError: of.isError, endedAt: of.now })
    .where('messageId', '=', of.messageId)
    .where('callId', '=', of.callId)
    .where('state', '<>', 'done')
    .returning('ordinal'),
);

function resultIdOf(messageId: string, ordinal: number): string {
  return `${messageId}.${ordinal}`;
}
