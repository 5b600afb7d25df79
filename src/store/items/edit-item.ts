import type { Authority } from '#contracts/outcome.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { oneLine, summaryLineOf } from '../base/one-line.ts';
import type { Lane } from '../rows/lane-row.ts';
import { canBeCorrected, changeSummary, correct, markCorrection, withOtherContent } from './corrections.ts';
import {
  findItem,
  type ItemAsked,
  type ItemChangeResult,
  type ItemRow,
  isOwn,
  itemStep,
  mayChange,
  recordChange,
  tooLateResult,
} from './item-change.ts';

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
  tx: Tx,
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

type RewordInput = { readonly row: ItemRow; readonly words: NewWords; readonly effects: Effects };

async function reword(tx: Tx, lane: Lane, { row, words, effects }: RewordInput): Promise<ItemChangeResult> {
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
export type Author = {
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
