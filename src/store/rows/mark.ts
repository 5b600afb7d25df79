/**
 * Writes which marks messages are to bear (`contracts/mark.ts`); `delivery/mark-part.ts` decides which of them holds.
 * The callers hold the lane's lock.
 */
import type { Tx } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';

type ItemMark = { readonly inboxId: string; readonly laneKey: string; readonly emoji: string };

/** Gives the item this mark for as long as it waits. */
export function markWaiting(tx: Tx, marking: ItemMark): Promise<void> {
  return upsertWaiting.post(tx, marking);
}

/** Gives the item this mark for as long as a run has taken it. */
export function markTaken(tx: Tx, marking: ItemMark): Promise<void> {
  return upsertTaken.post(tx, marking);
}

const upsertWaiting = prepared((db, of: QueryParams<ItemMark>) =>
  db
    .insertInto('marks')
    .values({ inboxId: of.inboxId, laneKey: of.laneKey, waiting: of.emoji })
    .onConflict((known) => known.column('inboxId').doUpdateSet({ waiting: of.emoji })),
);

const upsertTaken = prepared((db, of: QueryParams<ItemMark>) =>
  db
    .insertInto('marks')
    .values({ inboxId: of.inboxId, laneKey: of.laneKey, taken: of.emoji })
    .onConflict((known) => known.column('inboxId').doUpdateSet({ taken: of.emoji })),
);

/** Forgets what the items bore while a run had them, because they wait again. */
export async function unmarkTaken(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx.db.updateTable('marks').set({ taken: null }).where('inboxId', 'in', ids).execute();
}
