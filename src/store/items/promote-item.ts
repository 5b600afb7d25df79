import type { Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import type { Lane } from '../rows/lane-row.ts';
import {
  findItem,
  type ItemAsked,
  type ItemChangeResult,
  type ItemRow,
  isOwn,
  itemStep,
  recordChange,
  tooLateResult,
  wakeIfIdle,
} from './item-change.ts';
import { excerptOf } from './item-excerpt.ts';
import { type OpenItem, readOpenItems } from './open-items.ts';
import { putAhead } from './put-ahead.ts';

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
