/** Ends a part, or lets it wait for another attempt, with the consequences for the rest of its answer. */

import { openAlert, ownerPartPrefix } from '../alerts/note-alert.ts';
import type { Tx } from '../base/command.ts';
import { ensureRow } from '../base/insert-row.ts';
import { type InboxContent, json } from '../base/json.ts';
import { findRow } from '../base/row-by-key.ts';
import { rememberContext } from '../rows/remember-context.ts';
import { type AskedWait, endAskedWait, noteAskedWait, readAskedWait } from './asked-wait.ts';
import { closePart, failRestOf, returnPart } from './part-states.ts';
import { amendOutcome } from './reply-outcome.ts';
import { isChange } from './tool-target.ts';

export type Repeat = {
  readonly partKey: string;
  readonly dueAt: number;
  readonly problem: string;
  /** When an attempt that may have arrived began; undefined when the part certainly hasn't arrived. */
  readonly mayStandSince: number | undefined;
  /** The wait that the platform asks for, ms. */
  readonly askedMs?: number | undefined;
};

export async function reschedulePart(tx: Tx, repeat: Repeat): Promise<void> {
  await returnPart(tx, repeat);
  if (repeat.askedMs !== undefined) await noteAskedWait(tx, repeat.partKey, repeat.askedMs);
}

type End = {
  readonly key: string;
  readonly state: 'sent' | 'unknown' | 'failed';
  readonly problem?: string;
  readonly receipts?: readonly string[];
};

/** Ends the part. `asked`: its wait, if the caller has read it. */
export async function endPart(
  tx: Tx,
  { key, state, problem, receipts }: End,
  asked?: AskedWait,
): Promise<void> {
  const wait = asked ?? (await readAskedWait(tx, key));
  const ids = receipts ? JSON.stringify(receipts) : null;
  await closePart(tx, key, { state, problem: problem ?? null, receipts: ids });
  if (wait && wait.waitAskedSince !== null) await endAskedWait(tx, wait.conversationKey);
  if (state === 'sent') return;
  const row = await findRow(tx, 'outbox', key, [
    'runId',
    'answer',
    'purpose',
    'laneKey',
    'content',
    'conversationKey',
  ]);
  // A message that couldn't be removed was sent before, so no message of the agent is missing.
  if (!row || isRemoval(row)) return;
  const { runId, answer } = row;
  if (runId && answer && row.purpose === 'reply') await amendOutcome(tx, { runId, answer });
  if (row.purpose === 'preview') return;
  // A notice is Parley's own, so no message of the agent is missing.
  if (row.laneKey && row.purpose !== 'notice')
    await noteForAgent(tx, { laneKey: row.laneKey, state, problem, isChange: isToolChange(row) });
  // A notice to the owner that may not have arrived is no reason for another alert.
  if (state === 'unknown' && !key.startsWith(ownerPartPrefix))
    await openAlert(tx, { kind: 'delivery-unknown', subject: row.conversationKey });
}

type UndeliveredPart = {
  readonly laneKey: string;
  readonly state: 'unknown' | 'failed';
  readonly problem: string | undefined;
  /** The agent wanted to change an existing message, not to send one. */
  readonly isChange: boolean;
};

/** Reports a failed delivery to the agent, which reads about it in its next turn. */
async function noteForAgent(
  tx: Tx,
  { laneKey, state, problem = 'no reason known', isChange }: UndeliveredPart,
): Promise<void> {
  const what = state === 'failed' ? 'was not delivered' : 'may or may not have arrived';
  const subject = isChange ? 'A reaction, edit or removal of yours' : 'A message of yours';
  const prompt = `[Note from the gateway] ${subject} ${what}: ${problem}.`;
  const content: InboxContent = {
    text: prompt,
    prompt,
    sender: { id: '', name: 'gateway' },
    sentAt: tx.now,
    attachments: [],
  };
  const note = { laneKey, conversationKey: '', messageId: undefined, content, limit: deliveryNotes };
  await rememberContext(tx, note);
}

const deliveryNotes = 50;

/** Fails the part and the rest of its answer, whose end is useless without its beginning. */
export async function failAnswer(
  tx: Tx,
  { partKey, problem }: { partKey: string; problem: string },
): Promise<void> {
  await endPart(tx, { key: partKey, state: 'failed', problem });
  const part = await findRow(tx, 'outbox', partKey, ['answer', 'content', 'purpose']);
  if (!part?.answer || isRemoval(part)) return;
  await failRestOf(tx, part.answer);
}

type StoredPart = { readonly content: string; readonly purpose: string };

/** Says whether the part is one of Parley's own removals, which nothing awaits. */
function isRemoval({ content, purpose }: StoredPart): boolean {
  return purpose !== 'tool' && json.outbound(content).kind === 'delete';
}

function isToolChange({ content, purpose }: StoredPart): boolean {
  return purpose === 'tool' && isChange(json.outbound(content));
}

type Receipts = {
  readonly conversationKey: string;
  readonly partKey: string;
  readonly receipts: readonly string[];
};

export async function storeReceipts(tx: Tx, { conversationKey, partKey, receipts }: Receipts): Promise<void> {
  for (const messageId of receipts) {
    await ensureRow(tx, 'receipts', { conversationKey, messageId, partKey });
  }
}
