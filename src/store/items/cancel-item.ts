import { fillText } from '../../texts/chat-texts.ts';
import type { StepTx, StoreCommand } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { changeRow } from '../base/row-by-key.ts';
import { insertNotice } from '../delivery/insert-notice.ts';
import { endItems, endSummarized } from '../rows/item-states.ts';
import { type Lane, lockLane } from '../rows/lane-row.ts';
import type { Actor } from './actor.ts';
import { canBeCorrected, changeSummary, withdrawCorrections } from './corrections.ts';
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
  wakeIfIdle,
} from './item-change.ts';
import { excerptOf } from './item-excerpt.ts';
import { reviveSummary } from './revive-summary.ts';

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

/** Cancels all waiting items that the actor may change, including summarised ones. Returns how many. */
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
