/** Writes what becomes of a part, and nothing else does: `pending ⇄ sending`, then `sent`, `unknown` or `failed`. */

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

/** `failed`: the conversation is unreachable; `sending`: claimed for its first attempt as it is stored. */
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

/** Stores a preview as what it is until its platform id is known; a second one under its key adds nothing. */
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
 * The number of an attempt before which there was another. A part in `sending` below it is requeued when its process is known
 * not to have begun the call.
 */
export const firstRepeat = 2;

/** Counts every part in `sending` as repeated, so that no process's journal can tell that it was not sent. */
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

/** However long the platform was away, or asked to wait, the part has all its attempts when it is back. */
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

/** Fails the parts of the answer that nobody has begun to send. */
export async function failRestOf(tx: Tx, answer: string): Promise<void> {
  await failPending(tx, 'an earlier part of the answer failed').where('answer', '=', answer).execute();
}

/** Fails everything that waits to be sent in a conversation that can't be reached. */
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

/** Sends an unknown or failed part once more. Undefined when it is in another state, or isn't there. */
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

/** Gives up a pending part, or takes note of an unknown one. Undefined when it is in another state, or isn't there. */
export function dismissPart(tx: Tx, key: string) {
  return tx.db
    .updateTable('outbox')
    .set({ state: 'failed', problem: 'dropped by the operator', endedAt: tx.now })
    .where('key', '=', key)
    .where('state', 'in', ['pending', 'unknown'])
    .returning(['runId', 'answer', 'conversationKey'])
    .executeTakeFirst();
}

/** The preview stands, under its platform id. False when that is known, or an answer has taken the preview over. */
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

/** The preview could not be shown. */
export async function failPreview(tx: Tx, key: string, problem: string): Promise<void> {
  await changeRow(tx, 'outbox', key, { state: 'failed', problem, endedAt: tx.now });
}

/** The answer took the preview over, or takes it away: in the transaction that says so. */
export async function closePreview(tx: Tx, key: string | undefined): Promise<void> {
  if (key === undefined) return;
  await changeRow(tx, 'outbox', key, { endedAt: tx.now });
}

/** Removes a part that nobody misses: a waiting notice, whose message's own row says what became of it. */
export async function removePart(tx: Tx, key: string): Promise<void> {
  await tx.db.deleteFrom('outbox').where('key', '=', key).execute();
}
