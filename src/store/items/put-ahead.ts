import type { Tx } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { type Lane, takeSeq } from '../rows/lane-row.ts';
import { isAlike } from './choose-batch.ts';
import { recordChange } from './item-change.ts';
import { readWaiting } from './waiting-rows.ts';

/**
 * Gives waiting rows a rank before everything that waits; among themselves they keep the order of arrival. The
 * rank is the next number of the lane, negated, so that the latest promotion comes first, also before items
 * returned by a run. Returns how many rows still waited. The caller holds the lock.
 */
export async function putAhead(tx: Tx, lane: Lane, ids: readonly string[]): Promise<number> {
  const rank = -(await takeSeq(tx, lane.key));
  const { numUpdatedRows } = await tx.db
    .updateTable('inbox')
    .set({ rank })
    .where('id', 'in', ids)
    .where(isOpenItem())
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/**
 * `interrupt`: the newest message runs next, and those that waited with it come along as its context.
 * What has another route or authority keeps its order after them. After a `/new` that waits nobody is
 * put ahead: that run ends by the command, and what was sent after it is read in the order of arrival.
 */
export async function putNewestAhead(
  tx: Tx,
  lane: Lane,
  { id, by }: { readonly id: string; readonly by: string },
): Promise<void> {
  const waiting = await readWaiting(tx, lane.key);
  const newest = waiting.find((row) => row.id === id);
  if (!newest || waiting.some((row) => row.kind === 'command')) return;
  const together = waiting.filter((row) => isAlike(newest, row));
  const isAhead = waiting.slice(0, together.length).every((row) => together.includes(row));
  if (isAhead) return;
  const ids = together.map((row) => row.id);
  await putAhead(tx, lane, ids);
  for (const inboxId of ids) await recordChange(tx, { laneKey: lane.key, inboxId, kind: 'interrupt', by });
}
