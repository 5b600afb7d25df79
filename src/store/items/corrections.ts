/**
 * Changes a message that a run has read or that a summary line shows: a steer corrects the run, a line is replaced, and
 * withdrawn messages aren't taken again.
 */

import type { Selectable } from 'kysely';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { StepTx, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { type InboxContent, json } from '../base/json.ts';
import { changeRow } from '../base/row-access.ts';
import type { InboxTable } from '../base/tables.ts';
import { endItems } from '../rows/item.ts';
import type { Lane } from '../rows/lane.ts';
import { fetchWaitMs, type PlacedItem, placeItem } from './enqueue-item.ts';
import { dropRetained } from './retained-steers.ts';
import { isCorrectionOf, readWaiting, type WaitingRow } from './waiting-items.ts';

/** A message in its current state, and its lane, whose lock the caller holds. */
export type LockedItem = { readonly row: Selectable<InboxTable>; readonly lane: Lane };

/** Returns the message's new text between its quote and its content other than words. */
export function withOtherContent({ lead = '', tail = '' }: InboxContent, prompt: string): string {
  return [lead, prompt, tail].filter((piece) => piece !== '').join('\n');
}

/** Says whether the active run has read the message, even if the run has already answered it and continues. */
export function isInActiveRun({ row, lane }: LockedItem): boolean {
  return row.transcriptId !== null && row.runId === lane.runId;
}

export function markCorrection(prompt: string): string {
  return `(Correction of an earlier message.) ${prompt}`;
}

/** Sends the run a correction. The newest wording counts, so an unread correction is replaced. */
export async function correct(
  tx: StepTx,
  input: {
    readonly found: LockedItem;
    readonly text: string;
    readonly prompt: string;
    /** The new version's files, if they differ from those that the run has read. */
    readonly files?: readonly AttachmentRef[];
    readonly newId: string;
    readonly effects: Effects;
  },
): Promise<void> {
  const { found, text, prompt, files, newId, effects } = input;
  const { row, lane } = found;
  const { attachments: _, stored: __, ...rest } = json.content(row.content);
  const corrected: InboxContent = {
    ...rest,
    text,
    prompt: markCorrection(prompt),
    attachments: files ?? [],
    sentAt: tx.now,
    note: { kind: 'correction', of: row.messageId ?? row.id },
  };
  const [unread] = await correctionsOf(tx, found);
  const isFetching = corrected.attachments.length > 0;
  const dueAt = isFetching ? tx.now + fetchWaitMs : tx.now;
  if (unread && files === undefined) {
    // The unread correction's own files are still the newest.
    const { attachments, stored } = unread.content;
    const content = { ...corrected, attachments, ...(stored && { stored }) };
    await changeRow(tx, 'inbox', unread.id, { content: JSON.stringify(content) });
    effects.arrivals.push(lane.key);
    return;
  }
  if (unread) {
    const content = JSON.stringify(corrected);
    await changeRow(tx, 'inbox', unread.id, { content, isFetching: isFetching ? 1 : 0, dueAt });
    if (isFetching) effects.fetches.push(unread.id);
    effects.arrivals.push(lane.key);
    return;
  }
  const { kind, source, authority, account, conversationKey, senderId } = row;
  const correction: PlacedItem = {
    ...{ kind, source, authority, account, conversationKey, senderId },
    id: newId,
    reach: 'always',
    target: json.target(row.route),
    content: corrected,
    bundle: null,
    isHeld: false,
    isFetching,
    dueAt,
  };
  await placeItem(tx, lane, correction, effects);
}

/** Says whether the active run has read the message, or an earlier one has and a correction of it still waits. */
export async function canBeCorrected(tx: Tx, found: LockedItem): Promise<boolean> {
  return isInActiveRun(found) || (await correctionsOf(tx, found)).length > 0;
}

/** Reads the message's corrections that no run has taken yet. */
async function correctionsOf(tx: Tx, { row, lane }: LockedItem): Promise<readonly WaitingRow[]> {
  return (await readWaiting(tx, lane.key)).filter((waiting) => isCorrectionOf(waiting, row));
}

/**
 * Withdraws a message that a run has read: its unread corrections end as cancelled, and neither the message nor a
 * correction that was read is taken again after the run. An active run continues.
 */
export async function withdrawCorrections(tx: Tx, found: LockedItem, reason: string): Promise<void> {
  const { row, lane } = found;
  const ids = (await correctionsOf(tx, found)).map(({ id }) => id);
  await endItems(tx, ids, { outcome: 'cancelled', outcomeReason: reason });
  if (lane.runId === null) return;
  await dropRetained(
    tx,
    lane.runId,
    (kept) => kept.id === row.id || isCorrectionOf({ ...kept, content: json.content(kept.content) }, row),
  );
}

/** Replaces a message's summary line that no run has read yet, or removes it if `line` is undefined. */
export async function changeSummary(
  tx: Tx,
  { row, lane }: LockedItem,
  line: string | undefined,
): Promise<boolean> {
  const summaries = json.summaries(lane.overflow);
  if (!summaries.some((summary) => summary.inboxId === row.id)) return false;
  const changed = summaries.flatMap((summary) => {
    if (summary.inboxId !== row.id) return [summary];
    return line === undefined ? [] : [{ ...summary, line }];
  });
  const overflow = changed.length === 0 ? null : JSON.stringify(changed);
  await changeRow(tx, 'lanes', lane.key, { overflow });
  return true;
}
