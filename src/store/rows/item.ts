/**
 * Writes the states of inbox items; no other file does: `held → waiting → taken → ended`, and back to `waiting` from
 * `taken` or from a summary line that no run has read. Also writes the one outcome of each item, with the ledger entry
 * that follows from it. The callers hold the lane's lock; amending an answered item's outcome needs the run's.
 */
import { type Insertable, sql } from 'kysely';
import type { Outcome } from '#contracts/outcome.ts';
import type { Tx } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { type ComputedColumns, changeRow, insertNewRow, insertRow } from '../base/row-access.ts';
import type { Tables } from '../base/tables.ts';
import type { Lane } from './lane.ts';
import { unmarkTaken } from './mark.ts';

type NewItem = Omit<Insertable<Tables['inbox']>, 'state' | 'seq' | 'sourceKey'> & {
  readonly isHeld: boolean;
  readonly sourceKey: string | null;
};

/**
 * Stores an item, waiting or held, under the sequence number that its lane has just taken. Returns false when its
 * source key was used before, so that the item already exists.
 */
export async function insertItem(tx: Tx, { isHeld, ...item }: NewItem): Promise<boolean> {
  const row = { ...item, state: isHeld ? ('held' as const) : ('waiting' as const) };
  if (item.sourceKey !== null) return insertNewRow(tx, 'inbox', row, lastTaken);
  // An insert without a source key isn't a repeat, so a conflict must throw instead of looking like success.
  await insertRow(tx, 'inbox', row, lastTaken);
  return true;
}

const lastTaken = {
  seq: (of) => sql`(select "nextSeq" - 1 from "lanes" where "key" = ${of.laneKey})`,
} satisfies ComputedColumns;

/** The one outcome of an item, and the reason for it. */
export type ItemEnd = { readonly outcome: Outcome; readonly outcomeReason: string };

/**
 * Ends those of the items that no run has taken. A held one then counts as accepted in the ledger, since it has an
 * outcome. Returns how many were ended.
 */
export async function endItems(tx: Tx, ids: readonly string[], end: ItemEnd): Promise<number> {
  if (ids.length === 0) return 0;
  await acceptHeld(tx, ids);
  const { numUpdatedRows } = await tx.db
    .updateTable('inbox')
    .set({ state: 'ended', ...end })
    .where('id', 'in', ids)
    .where(isOpenItem())
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** Replaces the outcome `merged` of items that the cap has summarized, since their line was removed unread. */
export async function endSummarized(tx: Tx, ids: readonly string[], end: ItemEnd): Promise<void> {
  if (ids.length === 0) return;
  await tx.db
    .updateTable('inbox')
    .set({ ...end })
    .where('id', 'in', ids)
    .where('outcomeReason', '=', summarized)
    .execute();
}

/** Makes an item wait again that the cap has summarized and whose line no run has read. */
export async function reopenSummarized(tx: Tx, id: string): Promise<void> {
  await tx.db
    .updateTable('inbox')
    .set({ state: 'waiting', outcome: null, outcomeReason: null })
    .where('id', '=', id)
    .where('outcomeReason', '=', summarized)
    .where('runId', 'is', null)
    .execute();
}

/** The outcome reason of an item that the cap reduced to one line before the next run. */
export const summarized = 'summarized';

/** Lets held items run, because another item of their bundle has passed the mention gate. */
export async function openHeld(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await acceptHeld(tx, ids);
  await tx.db
    .updateTable('inbox')
    .set({ state: 'waiting' })
    .where('id', 'in', ids)
    .where('state', '=', 'held')
    .execute();
}

/** Removes a held item that wasn't addressed to the agent, and records so in the ledger. */
export async function dropHeld(tx: Tx, id: string): Promise<void> {
  await settleHeld(tx, [id], () => ({ outcome: 'ignored', reason: 'not-mentioned' }));
  await tx.db.deleteFrom('inbox').where('id', '=', id).where('state', '=', 'held').execute();
}

type HeldItem = { readonly id: string; readonly laneKey: string };
type HeldEntry = { readonly outcome: string; readonly reason?: string; readonly inboxId?: string };

function acceptHeld(tx: Tx, ids: readonly string[]): Promise<void> {
  return settleHeld(tx, ids, ({ id, laneKey }) => ({ outcome: 'accepted', inboxId: id, laneKey }));
}

async function settleHeld(
  tx: Tx,
  ids: readonly string[],
  entryOf: (item: HeldItem) => HeldEntry & { readonly laneKey?: string },
): Promise<void> {
  const held = await tx.db
    .selectFrom('inbox')
    .select(['id', 'account', 'laneKey', 'conversationKey', 'messageId'])
    .where('id', 'in', ids)
    .where('state', '=', 'held')
    .execute();
  for (const item of held) {
    await tx.db
      .updateTable('ledger')
      .set(entryOf(item))
      .where('account', '=', item.account)
      .where('conversationKey', '=', item.conversationKey)
      .where('messageId', '=', item.messageId)
      .where('outcome', '=', 'held')
      .execute();
  }
}

/** Marks the ledger entry of a message that was kept back as accepted. */
export async function acceptEntry(
  tx: Tx,
  { account, eventKey }: { readonly account: string; readonly eventKey: string },
  item: { readonly inboxId: string; readonly laneKey: string },
): Promise<void> {
  await tx.db
    .updateTable('ledger')
    .set({ outcome: 'accepted', reason: null, ...item })
    .where('account', '=', account)
    .where('eventKey', '=', eventKey)
    .execute();
}

export type TakenItem = {
  readonly id: string;
  readonly runId: string;
  /** Null: it stays out of the transcript. */
  readonly transcriptId: string | null;
  /** Merged into the last item of its batch, whose answer also counts as its own. */
  readonly isMerged: boolean;
  /** Is requeued if the run ends without having used it. */
  readonly isKept: boolean;
};

/** Assigns the item to a run, even if the item has ended since it was read; the run then ends it. */
export async function takeItem(tx: Tx, { id, isMerged, isKept, ...taken }: TakenItem): Promise<void> {
  await changeRow(tx, 'inbox', id, {
    ...taken,
    state: 'taken',
    isKept: isKept ? 1 : 0,
    outcome: isMerged ? 'merged' : null,
    outcomeReason: null,
  });
}

/** Requeues items that a run has taken but not used, in their old places. */
export async function returnItems(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx.db
    .updateTable('inbox')
    .set({ state: 'waiting', runId: null, transcriptId: null, isKept: 0 })
    .where('id', 'in', ids)
    .where('state', '=', 'taken')
    .execute();
  await unmarkTaken(tx, ids);
}

/** Ends the items that a run has taken but not answered. */
export async function endTaken(
  tx: Tx,
  runId: string,
  { outcome, outcomeReason }: { readonly outcome: Outcome; readonly outcomeReason: string | null },
): Promise<void> {
  await tx.db
    .updateTable('inbox')
    .set({ state: 'ended', outcome, outcomeReason })
    .where('runId', '=', runId)
    .where('state', '=', 'taken')
    .execute();
}

/** One answer of a run. The items that it answers store its message id. */
export type AnswerOf = { readonly runId: string; readonly answer: string };

export type AnsweredItems = AnswerOf & {
  readonly outcome: Outcome;
  readonly outcomeReason: string | undefined;
};

/**
 * Ends all items that the run has taken and not yet answered, with the answer's provisional outcome, which the delivery
 * of its parts may amend. Items that were merged into another keep that outcome.
 */
export async function endAnswered(tx: Tx, { outcomeReason, ...rows }: AnsweredItems): Promise<void> {
  await answerTaken.post(tx, { ...rows, outcomeReason: outcomeReason ?? null });
}

type AnsweredRun = { runId: string; answer: string; outcome: string; outcomeReason: string | null };

const answerTaken = prepared((db, of: QueryParams<AnsweredRun>) =>
  db
    .updateTable('inbox')
    .set((eb) => ({
      state: 'ended',
      answer: of.answer,
      outcome: eb.fn.coalesce('outcome', of.outcome),
      outcomeReason: eb
        .case()
        .when('outcome', 'is', null)
        .then(of.outcomeReason)
        .else(eb.ref('outcomeReason'))
        .end(),
    }))
    .where('runId', '=', of.runId)
    .where('state', '=', 'taken'),
);

/** The outcome reason of an answered item that counts as failed, or that may not have been answered. */
export const deliveryFailed = 'delivery failed';
const deliveryUnknown = 'delivery unknown';

/** Amends the provisional outcome of answered items: a part of the answer didn't arrive, or may not have. */
export async function amendAnswered(
  tx: Tx,
  { runId, answer }: AnswerOf,
  { hasFailed }: { readonly hasFailed: boolean },
): Promise<void> {
  await tx.db
    .updateTable('inbox')
    .set({
      ...(hasFailed && { outcome: 'failed' }),
      outcomeReason: hasFailed ? deliveryFailed : deliveryUnknown,
    })
    .where('runId', '=', runId)
    .where('answer', '=', answer)
    .where('outcome', '=', 'answered')
    .execute();
}

/** Undoes `amendAnswered`, because the operator has changed a part that had ended. */
export async function restoreAnswered(tx: Tx, { runId, answer }: AnswerOf): Promise<void> {
  await tx.db
    .updateTable('inbox')
    .set({ outcome: 'answered', outcomeReason: null })
    .where('runId', '=', runId)
    .where('answer', '=', answer)
    .where('outcomeReason', 'in', [deliveryFailed, deliveryUnknown])
    .execute();
}

type Sender = { readonly account: string; readonly senderId: string; readonly conversationKey: string };

type SummariesEnd = {
  readonly isTheirs: (row: Sender) => boolean;
  readonly end: ItemEnd;
};

/**
 * Removes the summary lines of these senders from the lane and ends their messages as given, because a line that no run
 * has read waits like any other message. Returns how many there were. The caller holds the lane's lock.
 */
export async function endSummaries(
  tx: Tx,
  lane: Pick<Lane, 'key' | 'overflow'>,
  { isTheirs, end }: SummariesEnd,
): Promise<number> {
  const summaries = json.summaries(lane.overflow);
  if (summaries.length === 0) return 0;
  const rows = await tx.db
    .selectFrom('inbox')
    .select(['id', 'account', 'senderId', 'conversationKey'])
    .where(
      'id',
      'in',
      summaries.map(({ inboxId }) => inboxId),
    )
    .execute();
  const gone = rows.filter(isTheirs);
  if (gone.length === 0) return 0;
  const ids = new Set(gone.map(({ id }) => id));
  const kept = summaries.filter(({ inboxId }) => !ids.has(inboxId));
  const overflow = kept.length === 0 ? null : JSON.stringify(kept);
  await changeRow(tx, 'lanes', lane.key, { overflow });
  await endSummarized(tx, [...ids], end);
  return gone.length;
}
