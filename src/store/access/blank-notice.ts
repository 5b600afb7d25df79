import type { StepTx } from '../base/command.ts';

/** Removes a void code from the outbox too, unless it is being sent at the moment. */
export async function blankNotice(tx: StepTx, noticeKey: string): Promise<void> {
  const content = JSON.stringify({ kind: 'text', text: { text: tx.texts.pairingCodeGone, spans: [] } });
  await tx.db
    .updateTable('outbox')
    .set({ content })
    .where('key', '=', noticeKey)
    .where('state', '<>', 'sending')
    .execute();
}
