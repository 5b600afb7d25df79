import type { Outbound } from '#contracts/outbound.ts';
import type { StoreCommand } from '../base/command.ts';
import { ensureConversation, takePlace } from './insert-part.ts';
import { confirmPreview, failPreview, storePreview } from './part-states.ts';

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
        await storePreview(tx, {
          key: step.key,
          conversationKey,
          place,
          runId: step.runId,
          purpose: 'preview',
          route: JSON.stringify(route),
          content: JSON.stringify(step.part.content),
          createdAt: tx.now,
        });
        return;
      }
      case 'sent':
        return confirmPreview(tx, step.key, step.messageId);
      case 'lost':
        return failPreview(tx, step.key, step.problem);
      default:
        return step satisfies never;
    }
  },
};
