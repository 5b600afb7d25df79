import type { Authority } from '#contracts/outcome.ts';
import { fillText } from '../../texts/chat-texts.ts';
import type { StepTx, StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { oneLine, summaryLineOf } from '../base/one-line.ts';
import { changeRow } from '../base/row-access.ts';
import { insertNotice } from '../delivery/part.ts';
import { endItems, endSummarized } from '../rows/item.ts';
import { type Lane, lockLane } from '../rows/lane.ts';
import { markUnsettled, taskIn } from '../tasks/task.ts';
import {
  canBeCorrected,
  changeSummary,
  correct,
  markCorrection,
  withdrawCorrections,
  withOtherContent,
} from './corrections.ts';
import {
  type Actor,
  excerptOf,
  findItem,
  type ItemAsked,
  type ItemChangeResult,
  type ItemRow,
  isOwn,
  itemStep,
  mayChange,
  recordChange,
  tooLateResult,
  wakeIfIdle,
} from './item-change.ts';
import { reviveSummary } from './overflow.ts';
import { type OpenItem, putAhead, readOpenItems } from './waiting-items.ts';

export type CancelInput = {
  readonly actor: Actor;
};

type InTransaction = { readonly effects: Effects };

/**
 * Ends a waiting message as cancelled, and records by whom. A message that the active run has taken isn't removed from
 * it: its unread corrections are withdrawn, and the caller offers a stop. The caller holds the lane's lock.
 */
export async function cancel(
  tx: StepTx,
  lane: Lane,
  { number, actor, effects }: ItemAsked & CancelInput & InTransaction,
): Promise<ItemChangeResult> {
  const row = await findItem(tx, lane, number);
  if (!row) return { kind: 'unknown' };
  if (!mayChange(actor, row)) return { kind: 'not-permitted' };
  if ((await endItems(tx, [row.id], ending(actor))) > 0) {
    await finishCancel(tx, lane, { row, actor, effects });
    await reviveSummary(tx, lane.key, effects);
    return { kind: 'done', excerpt: excerptOf(row) };
  }
  const found = { row: (await findItem(tx, lane, number)) ?? row, lane };
  if (await changeSummary(tx, found, undefined)) {
    await endSummarized(tx, [row.id], ending(actor));
    await finishCancel(tx, lane, { row, actor, effects });
    return { kind: 'done', excerpt: excerptOf(row) };
  }
  if (await canBeCorrected(tx, found)) await withdrawCorrections(tx, found, ending(actor).outcomeReason);
  await reviveSummary(tx, lane.key, effects);
  return tooLateResult(found.row);
}

/** Cancels all waiting items that the actor may change, including summarized ones. Returns how many. */
export async function cancelAll(
  tx: StepTx,
  lane: Lane,
  { actor, effects }: CancelInput & InTransaction,
): Promise<number> {
  const open = await tx.db
    .selectFrom('inbox')
    .selectAll()
    .where('laneKey', '=', lane.key)
    .where(isOpenItem())
    .execute();
  let count = 0;
  for (const row of open) {
    if (!mayChange(actor, row) || (await endItems(tx, [row.id], ending(actor))) === 0) continue;
    await finishCancel(tx, lane, { row, actor, effects });
    count++;
  }
  const summaries = json.summaries(lane.overflow);
  const left = [];
  for (const summary of summaries) {
    const row = await findItem(tx, lane, summary.seq);
    if (!row || !mayChange(actor, row)) {
      left.push(summary);
      continue;
    }
    await endSummarized(tx, [row.id], ending(actor));
    await finishCancel(tx, lane, { row, actor, effects });
    count++;
  }
  const overflow = left.length === 0 ? null : JSON.stringify(left);
  if (left.length < summaries.length) await changeRow(tx, 'lanes', lane.key, { overflow });
  if (count > 0) await reviveSummary(tx, lane.key, effects);
  return count;
}

function ending({ ref }: Actor) {
  return { outcome: 'cancelled', outcomeReason: `by ${ref}` } as const;
}

type CancelledRow = CancelInput & InTransaction & { readonly row: ItemRow };

/** Records the cancellation, wakes the lane for later items, and notifies a sender who neither asked nor sees it. */
async function finishCancel(tx: StepTx, lane: Lane, { row, actor, effects }: CancelledRow): Promise<void> {
  await recordChange(tx, { laneKey: lane.key, inboxId: row.id, kind: 'cancel', by: actor.ref });
  wakeIfIdle(tx, lane, effects);
  const taskId = taskIn(row.sourceKey);
  if (taskId !== undefined) {
    await markUnsettled(tx, taskId);
    effects.tasks.push({ id: taskId, laneKey: lane.key, isUnsettled: true });
  }
  // Nobody in a conversation waits for items that Parley itself has put in.
  if (row.source !== 'platform') return;
  if (isOwn(actor, row) || row.conversationKey === actor.conversationKey) return;
  const text = fillText(tx.texts.itemCancelledTold, { excerpt: excerptOf(row) });
  const notice = { key: `${row.id}:cancelled`, route: json.route(row.route), text };
  effects.deliveries.push(await insertNotice(tx, notice));
}

/** Cancels one item. Safe to repeat: a message is cancelled once. */
export const cancelItem = itemStep<ItemAsked & CancelInput>('cancelItem', cancel);

/** Cancels all waiting items that the actor may change. Safe to repeat: cancelled items no longer wait. */
export const cancelItems: StoreCommand<
  CancelInput & { readonly laneKey: string },
  { readonly count: number; readonly effects: Effects }
> = {
  name: 'cancelItems',
  run: async (tx, { laneKey, ...asked }) => {
    const effects = noEffects();
    const lane = await lockLane(tx, laneKey);
    return { count: lane ? await cancelAll(tx, lane, { ...asked, effects }) : 0, effects };
  },
};

/** A new text for an item. */
export type NewWords = {
  readonly text: string;
  /** The text as the model reads it, under the name and with the rights of the message's sender. */
  readonly prompt: string;
  /** Id of the correction, in case a run has taken the message. */
  readonly newId: string;
};

/**
 * Changes the text of a waiting message; its sender, rights, place and files stay. If the active run has taken it, a
 * steer corrects it, as if its sender had edited it. The caller holds the lane's lock.
 */
export async function edit(
  tx: StepTx,
  lane: Lane,
  { number, actor, effects, ...words }: ItemAsked & NewWords & { readonly effects: Effects },
): Promise<ItemChangeResult> {
  const row = await findItem(tx, lane, number);
  if (!row) return { kind: 'unknown' };
  if (!mayChange(actor, row) || (actor.mayRewordOwnOnly && !isOwn(actor, row)))
    return { kind: 'not-permitted' };
  if (row.kind === 'command') return { kind: 'kept' };
  const changed = await reword(tx, lane, { row, words, effects });
  if (changed.kind === 'done' || changed.kind === 'steered')
    await recordChange(tx, { laneKey: lane.key, inboxId: row.id, kind: 'edit', by: actor.ref });
  return changed;
}

async function reword(
  tx: StepTx,
  lane: Lane,
  { row, words, effects }: { readonly row: ItemRow; readonly words: NewWords; readonly effects: Effects },
): Promise<ItemChangeResult> {
  const { text, newId } = words;
  const content = json.content(row.content);
  const prompt = withOtherContent(content, words.prompt);
  const isCorrection = content.note?.kind === 'correction';
  const reworded = { ...content, text, prompt: isCorrection ? markCorrection(prompt) : prompt };
  const excerpt = oneLine(text);
  const rows = tx.db
    .updateTable('inbox')
    .set({ content: JSON.stringify(reworded) })
    .where('id', '=', row.id);
  const { numUpdatedRows } = await rows.where(isOpenItem()).executeTakeFirst();
  if (numUpdatedRows > 0n) return { kind: 'done', excerpt };
  const found = { row: (await findItem(tx, lane, row.seq)) ?? row, lane };
  if (await canBeCorrected(tx, found)) {
    await rows.execute();
    await correct(tx, { found, text, prompt: words.prompt, newId, effects });
    return { kind: 'steered' };
  }
  if (!(await changeSummary(tx, found, summaryLineOf(reworded)))) return tooLateResult(found.row);
  await rows.execute();
  return { kind: 'done', excerpt };
}

/** Edits one item. Safe to repeat: the same text changes nothing more. */
export const editItem = itemStep<ItemAsked & NewWords>('editItem', edit);

/** Whose text the model reads: the part of a message that an edit keeps. */
type Author = {
  readonly name: string;
  readonly authority: Authority;
  readonly sentAt: number;
  readonly isGroup: boolean;
};

/** Reads who wrote an item; undefined when no item has that number. */
export const readAuthor: StoreQuery<
  { readonly laneKey: string; readonly number: number },
  Author | undefined
> = {
  query: 'readAuthor',
  run: async (tx, { laneKey, number }) => {
    const row = await tx.db
      .selectFrom('inbox')
      .innerJoin('lanes', 'lanes.key', 'inbox.laneKey')
      .select(['inbox.content', 'inbox.authority', 'lanes.chatKind'])
      .where('inbox.laneKey', '=', laneKey)
      .where('inbox.seq', '=', number)
      .executeTakeFirst();
    if (!row) return undefined;
    const { sender, sentAt } = json.content(row.content);
    // The store wrote it when the message was accepted.
    const authority = row.authority as Authority;
    return { name: sender.name, authority, sentAt, isGroup: row.chatKind === 'group' };
  },
};

/**
 * Moves a waiting message before all other waiting items; its number stays. No message overtakes a waiting `/new`,
 * since messages sent after it belong to the new conversation and those before it to the old one. Parts of one album or
 * text move together. The caller holds the lane's lock.
 */
export async function promote(
  tx: Tx,
  lane: Lane,
  { number, actor, effects }: ItemAsked & { readonly effects: Effects },
): Promise<ItemChangeResult> {
  const row = await findItem(tx, lane, number);
  if (!row) return { kind: 'unknown' };
  if (!actor.mayChangeAny && !(actor.mayPromoteOwn && isOwn(actor, row))) return { kind: 'not-permitted' };
  if (row.kind === 'command') return { kind: 'kept' };
  const open = await readOpenItems(tx, lane.key);
  if (!open.some(({ id }) => id === row.id)) return tooLateResult(row);
  if (isBehindCommand(open, row)) return { kind: 'behind' };
  const ids = partsOf(open, row);
  const isFirst = open.slice(0, ids.length).every(({ id }) => ids.includes(id));
  if (isFirst) return { kind: 'done', excerpt: excerptOf(row) };
  if ((await putAhead(tx, lane, ids)) === 0) return tooLateResult((await findItem(tx, lane, number)) ?? row);
  for (const inboxId of ids)
    await recordChange(tx, { laneKey: lane.key, inboxId, kind: 'promote', by: actor.ref });
  wakeIfIdle(tx, lane, effects);
  return { kind: 'done', excerpt: excerptOf(row) };
}

/** Says whether the item comes after a command, which it can't overtake. */
function isBehindCommand(open: readonly OpenItem[], { seq }: { readonly seq: number }): boolean {
  return open.some((item) => item.kind === 'command' && item.seq < seq);
}

function partsOf(open: readonly OpenItem[], row: ItemRow): readonly string[] {
  const isPart = (item: OpenItem) =>
    item.id === row.id || (row.bundle !== null && item.bundle === row.bundle);
  return open.filter((item) => isPart(item) && !isBehindCommand(open, item)).map(({ id }) => id);
}

/** Promotes one item. Safe to repeat: an item that is already first stays there. */
export const promoteItem = itemStep<ItemAsked>('promoteItem', promote);
