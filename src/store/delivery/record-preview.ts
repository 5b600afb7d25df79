import type { Outbound } from '#contracts/outbound.ts';
import type { StoreCommand, Tx } from '../base/command.ts';
import { ensureConversation, takePlace } from './insert-part.ts';

export type PreviewStep =
  | { readonly kind: 'sending'; readonly key: string; readonly runId: string; readonly part: Outbound }
  | { readonly kind: 'sent'; readonly key: string; readonly messageId: string }
  | { readonly kind: 'lost'; readonly key: string; readonly problem: string };

/** A preview is a part beside the order: stored before it is shown, its platform id after. */
export const recordPreview: StoreCommand<PreviewStep, void> = {
  name: 'recordPreview',
  run: async (tx, step) => {
    switch (step.kind) {
      case 'sending': {
        const { route, conversationKey, place } = await takePlace(tx, step.part.route);
        await ensureConversation(tx, conversationKey);
        await tx.db
          .insertInto('outbox')
          .values({
            key: step.key,
            conversationKey,
            place,
            runId: step.runId,
            purpose: 'preview',
            route: JSON.stringify(route),
            content: JSON.stringify(step.part.content),
            state: 'unknown',
            tries: 1,
            dueAt: tx.now,
            sendingAt: tx.now,
            createdAt: tx.now,
          })
          .onConflict((c) => c.doNothing())
          .execute();
        return;
      }
      case 'sent':
        await tx.db
          .updateTable('outbox')
          .set({ state: 'sent', receipts: JSON.stringify([step.messageId]) })
          .where('key', '=', step.key)
          .execute();
        return;
      case 'lost':
        await tx.db
          .updateTable('outbox')
          .set({ state: 'failed', problem: step.problem, endedAt: tx.now })
          .where('key', '=', step.key)
          .execute();
        return;
      default:
        return step satisfies never;
    }
  },
};

/** The answer took the preview over, or takes it away: in the transaction that says so. */
export async function closePreview(tx: Tx, key: string | undefined): Promise<void> {
  if (key === undefined) return;
  await tx.db.updateTable('outbox').set({ endedAt: tx.now }).where('key', '=', key).execute();
}
