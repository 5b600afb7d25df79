import type { Tx } from '../base/command.ts';

/**
 * Held rows that were opened by a sibling count as accepted in the ledger too; so do those that end before
 * that, since they have an outcome. Rows that were not held stay as they are.
 */
export async function openLedger(tx: Tx, { ids }: { ids: readonly string[] }): Promise<void> {
  if (ids.length === 0) return;
  const rows = await tx.db
    .selectFrom('inbox')
    .select(['id', 'account', 'laneKey', 'conversationKey', 'messageId'])
    .where('id', 'in', ids)
    .execute();
  for (const row of rows) {
    await tx.db
      .updateTable('ledger')
      .set({ outcome: 'accepted', inboxId: row.id, laneKey: row.laneKey })
      .where('account', '=', row.account)
      .where('conversationKey', '=', row.conversationKey)
      .where('messageId', '=', row.messageId)
      .where('outcome', '=', 'held')
      .execute();
  }
}
