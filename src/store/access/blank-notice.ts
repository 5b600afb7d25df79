import type { StepTx } from '../base/command.ts';

/** The code is worth nothing any more and leaves the outbox too, unless it is just being sent. */
export async function blankNotice(tx: StepTx, noticeKey: string): Promise<void> {
  const content = JSON.stringify({ kind: 'text', text: { text: tx.texts.pairingCodeGone, spans: [] } });
  await tx.db
    .updateTable('outbox')
    .set({ content })
    .where('key', '=', noticeKey)
    .where('state', '<>', 'sending')
    .execute();
}
