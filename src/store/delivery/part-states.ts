/** Writes the states of parts; no other file does: `pending ⇄ sending`, then `sent`, `unknown` or `failed`. */

import type { Insertable } from 'kysely';
import type { Tx } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { ensureRow, insertRow } from '../base/insert-row.ts';
import { changeRow, plus } from '../base/row-by-key.ts';
import type { OutboxTable } from '../base/tables.ts';

type NewRow = Omit<
  Insertable<OutboxTable>,
  'state' | 'problem' | 'attempts' | 'dueAt' | 'sendingAt' | 'endedAt'
>;

/** `failed`: the conversation is unreachable; `sending`: claimed for its first attempt in the step that stores it. */
export type FirstPartState = 'pending' | 'sending' | 'failed';

/** Stores a part; throws when its key is taken. */
export async function storePart(tx: Tx, row: NewRow, state: FirstPartState): Promise<void> {
  const isSending = state === 'sending';
  await insertRow(tx, 'outbox', {
    ...row,
    state,
    problem: state === 'failed' ? unreachable : null,
    attempts: isSending ? 1 : 0,
    dueAt: tx.now,
    sendingAt: isSending ? tx.now : null,
    endedAt: state === 'failed' ? tx.now : null,
  });
}

/** Stores a preview, `unknown` until its platform id is known; a second insert under its key changes nothing. */
export async function storePreview(tx: Tx, row: NewRow): Promise<void> {
  const attempt = { attempts: 1, dueAt: tx.now, sendingAt: tx.now };
  await ensureRow(tx, 'outbox', { ...row, ...attempt, state: 'unknown' });
}

const unreachable = 'the conversation is unreachable';

/** Marks the part as handed to the platform; `sendingAt` is when the first attempt that may have arrived began. */
export function beginSending(
  tx: Tx,
  key: string,
  { sendingAt, attempts }: { readonly sendingAt: number; readonly attempts: number },
): Promise<void> {
  return changeRow(tx, 'outbox', key, { state: 'sending', sendingAt, attempts });
}

/**
 * The number of the first attempt that is a repeat. A part in `sending` with a lower number is requeued if its process
 * is known not to have begun the call.
 */
export const firstRepeat = 2;

/** Marks every part in `sending` as repeated, so that no process's journal counts as proof that it wasn't sent. */
export async function distrustSending(tx: Tx): Promise<void> {
  await tx.db
    .updateTable('outbox')
    .set({ attempts: firstRepeat })
    .where(isOpenPart())
    .where('state', '=', 'sending')
    .where('attempts', '<', firstRepeat)
    .execute();
}

type NextAttempt = {
  readonly partKey: string;
  readonly dueAt: number;
  readonly problem: string;
  readonly mayStandSince: number | undefined;
};

/** Lets the part wait for another attempt. */
export async function returnPart(tx: Tx, next: NextAttempt): Promise<void> {
  const { partKey, dueAt, problem, mayStandSince } = next;
  await changeRow(tx, 'outbox', partKey, {
    state: 'pending',
    sendingAt: mayStandSince ?? null,
    dueAt,
    problem,
  });
}

/** Takes back an attempt: outages and requested waits don't consume attempts. */
export async function refundAttempt(tx: Tx, partKey: string): Promise<void> {
  await changeRow(tx, 'outbox', partKey, { attempts: plus(-1) });
}

/** Requeues parts whose call had not started. */
export async function requeueParts(tx: Tx, keys: readonly string[]): Promise<void> {
  await tx.db
    .updateTable('outbox')
    .set({ state: 'pending', attempts: 0, sendingAt: null })
    .where('key', 'in', keys)
    .execute();
}

type PartEnd = {
  readonly state: 'sent' | 'unknown' | 'failed';
  readonly problem: string | null;
  /** JSON of the platform's ids. */
  readonly receipts: string | null;
};

/** Ends the part. */
export function closePart(tx: Tx, key: string, { state, problem, receipts }: PartEnd): Promise<void> {
  return changeRow(tx, 'outbox', key, { state, problem, receipts, endedAt: tx.now });
}

/** Fails the parts of the answer that are still pending. */
export async function failRestOf(tx: Tx, answer: string): Promise<void> {
  await failPending(tx, 'an earlier part of the answer failed').where('answer', '=', answer).execute();
}

/** Fails all pending parts of a conversation that can't be reached. */
export function failUnreachable(tx: Tx, conversationKey: string) {
  return failPending(tx, unreachable)
    .where('conversationKey', '=', conversationKey)
    .returning(['runId', 'answer'])
    .execute();
}

function failPending(tx: Tx, problem: string) {
  return tx.db
    .updateTable('outbox')
    .set({ state: 'failed', problem, endedAt: tx.now })
    .where(isOpenPart())
    .where('state', '=', 'pending');
}

const freshAttempt = {
  attempts: 0,
  sendingAt: null,
  endedAt: null,
  waitAskedSince: null,
  waitAskedUntil: null,
};

/** Makes an unknown or failed part pending again. Returns undefined when it is in another state or doesn't exist. */
export function reopenPart(tx: Tx, key: string) {
  return tx.db
    .updateTable('outbox')
    .set({ state: 'pending', dueAt: tx.now, ...freshAttempt })
    .where('key', '=', key)
    .where('state', 'in', ['unknown', 'failed'])
    .where('purpose', '<>', 'preview')
    .returning(['runId', 'answer', 'conversationKey'])
    .executeTakeFirst();
}

/** Fails a pending or unknown part. Returns undefined when it is in another state or doesn't exist. */
export function dismissPart(tx: Tx, key: string) {
  return tx.db
    .updateTable('outbox')
    .set({ state: 'failed', problem: 'dropped by the operator', endedAt: tx.now })
    .where('key', '=', key)
    .where('state', 'in', ['pending', 'unknown'])
    .returning(['runId', 'answer', 'conversationKey'])
    .executeTakeFirst();
}

/** Records a shown preview's platform id. Returns false when it is known, or an answer has taken the preview over. */
export async function confirmPreview(tx: Tx, key: string, messageId: string): Promise<boolean> {
  const { numUpdatedRows } = await tx.db
    .updateTable('outbox')
    .set({ state: 'sent', receipts: JSON.stringify([messageId]) })
    .where('key', '=', key)
    .where('state', '=', 'unknown')
    .where('endedAt', 'is', null)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0;
}

/** Records that the preview couldn't be shown. */
export async function failPreview(tx: Tx, key: string, problem: string): Promise<void> {
  await changeRow(tx, 'outbox', key, { state: 'failed', problem, endedAt: tx.now });
}

/** Ends the preview, in the transaction in which the answer takes it over or removes it. */
export async function closePreview(tx: Tx, key: string | undefined): Promise<void> {
  if (key === undefined) return;
  await changeRow(tx, 'outbox', key, { endedAt: tx.now });
}

/** Deletes a part that needs no record: a waiting notice, or an edit of a message that was never shown. */
export async function removePart(tx: Tx, key: string): Promise<void> {
  await tx.db.deleteFrom('outbox').where('key', '=', key).execute();
}
