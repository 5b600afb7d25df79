/** Ends a part, or lets it wait for another attempt, with the consequences for the rest of its answer. */

import { longestWaitMs } from '#channel-kit/remote-number.ts';
import { timeText } from '#channel-kit/time-text.ts';
import type { Found } from '#contracts/channel-abilities.ts';
import type { SendResult } from '#contracts/outbound.ts';
import { closeAlert, openAlert, ownerPartPrefix } from '../alerts/alert.ts';
import type { Tx } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { type InboxContent, json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { ensureRow, findRow, lockRows } from '../base/row-access.ts';
import { rememberContext } from '../rows/group-context.ts';
import { type AnswerOf, amendAnswered, restoreAnswered } from '../rows/item.ts';
import { closePart, failRestOf, returnPart } from './part.ts';
import { isChange } from './tool-send.ts';

/** The result of a send, once retries are counted. */
export type SendOutcome =
  | Exclude<SendResult, { readonly kind: 'retry' }>
  | Retry
  /** All attempts are used up, so a `retry` became final. */
  | { readonly kind: 'exhausted'; readonly reason: string }
  /** The result of looking for an earlier attempt. */
  | { readonly kind: 'looked-up'; readonly found: Found };

/** `afterMs`: how long to wait now; `askedMs`: the wait requested by the platform, if any, at most 30 days. */
type Retry = Extract<SendResult, { readonly kind: 'retry' }> & { readonly askedMs?: number };

export type Repeat = {
  readonly partKey: string;
  readonly dueAt: number;
  readonly problem: string;
  /** When an attempt that may have arrived began; undefined when the part certainly hasn't arrived. */
  readonly mayHaveArrivedSince: number | undefined;
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
  const subject = isChange ? 'A change of a message that you asked for' : 'A message of yours';
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

/** Fails the part and the rest of its answer, whose end is useless without its beginning; a file costs only itself. */
export async function failAnswer(
  tx: Tx,
  { partKey, problem }: { partKey: string; problem: string },
): Promise<void> {
  await endPart(tx, { key: partKey, state: 'failed', problem });
  const part = await findRow(tx, 'outbox', partKey, ['answer', 'content', 'purpose']);
  if (!part?.answer || isRemoval(part) || json.outbound(part.content).kind === 'media') return;
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

/**
 * Amends the provisional outcome of the answered items according to the answer's parts: `answered` is only kept while
 * none of them has failed. Called whenever a part has ended; repeating it changes nothing.
 */
export async function amendOutcome(tx: Tx, answer: AnswerOf): Promise<void> {
  await lockRun(tx, answer.runId);
  const ends = await troubledReplies.all(tx, answer);
  if (ends.length === 0) return;
  await amendAnswered(tx, answer, { hasFailed: ends.some(({ state }) => state === 'failed') });
}

const troubledReplies = prepared((db, of: QueryParams<AnswerOf>) =>
  db
    .selectFrom('outbox')
    .select('state')
    .where('runId', '=', of.runId)
    .where('answer', '=', of.answer)
    .where('purpose', '=', 'reply')
    .where('state', 'in', ['failed', 'unknown']),
);

/** Determines the outcome of the answered items again, after the operator has changed a part that had ended. */
export async function reviseOutcome(tx: Tx, answer: AnswerOf): Promise<void> {
  await lockRun(tx, answer.runId);
  await restoreAnswered(tx, answer);
  await amendOutcome(tx, answer);
}

/** Locks the run, so that of two parts of one answer that end at the same time, the second sees the first one's row. */
async function lockRun(tx: Tx, runId: string): Promise<void> {
  if (tx.dialect !== 'postgres') return;
  await lockRows(tx, tx.db.selectFrom('runs').select('id').where('id', '=', runId));
}

/**
 * If a platform asks to wait before a part is sent, it is called again after five minutes at the latest, whatever time
 * it asked for, and that doesn't count as an attempt. The part stores when the platform first asked and until when. A
 * wait of more than five minutes, whether requested at once or in total, raises an alert that lasts until the part has
 * ended.
 */
async function noteAskedWait(tx: Tx, partKey: string, askedMs: number): Promise<void> {
  const until = tx.now + askedMs;
  const { since, conversationKey } = await tx.db
    .updateTable('outbox')
    .set((eb) => ({
      waitAskedSince: eb.fn.coalesce('waitAskedSince', eb.val(tx.now)),
      waitAskedUntil: until,
    }))
    .where('key', '=', partKey)
    .returning(['waitAskedSince as since', 'conversationKey'])
    .executeTakeFirstOrThrow();
  const isLong = askedMs > longestWaitMs || tx.now - Number(since) > longestWaitMs;
  // An alert's own delivery raises no alert.
  if (!isLong || partKey.startsWith(ownerPartPrefix)) return;
  const values = { since: timeText(Number(since)), until: timeText(until) };
  await openAlert(tx, { kind: 'delivery-waits', subject: conversationKey, values });
}

/** When a part's platform first asked to wait, ms; null when it hasn't. */
export type AskedWait = { readonly conversationKey: string; readonly waitAskedSince: number | null };

/** A part's wait, with the part's state and attempts. */
export type AskedPart = AskedWait & { readonly state: string; readonly attempts: number };

/** Reads the part's wait; undefined when there is no such part. */
export function readAskedWait(tx: Tx, partKey: string): Promise<AskedPart | undefined> {
  return findRow(tx, 'outbox', partKey, ['conversationKey', 'waitAskedSince', 'state', 'attempts']);
}

/** Ends the wait of a part that has ended or moved; the alert closes once no other part there has to wait. */
export async function endAskedWait(tx: Tx, conversationKey: string, isSilent = false): Promise<void> {
  const other = await tx.db
    .selectFrom('outbox')
    .select('key')
    .where('conversationKey', '=', conversationKey)
    .where(isOpenPart())
    .where('waitAskedSince', 'is not', null)
    .limit(1)
    .executeTakeFirst();
  if (!other) await closeAlert(tx, { kind: 'delivery-waits', subject: conversationKey, isSilent });
}
