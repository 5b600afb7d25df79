import type { Tx } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { type Lane, takeSeq } from '../rows/lane-row.ts';
import { isAlike } from './choose-batch.ts';
import { recordChange } from './item-change.ts';
import { readWaiting } from './waiting-rows.ts';

/**
 * Gives waiting rows a rank before all others; among themselves they keep their order of arrival. The rank is the
 * lane's next sequence number, negated, so that the latest promotion comes first, even before items that a run has
 * returned. Returns how many rows were still waiting. The caller holds the lane's lock.
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
 * For `interrupt`: makes the newest message run next, together with waiting ones of the same route and authority as its
 * context. Others keep their order after them. If a `/new` waits, no message is moved: the command ends the active run,
 * and messages after it are read in their order of arrival.
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
