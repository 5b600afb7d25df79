import type { Outbound } from '#contracts/outbound.ts';
import type { StoreCommand } from '../base/command.ts';
import { headPart } from './claim-delivery.ts';
import { takePlace } from './insert-part.ts';
import { confirmPreview, failPreview, storePreview } from './part-states.ts';

export type PreviewStep =
  | { readonly kind: 'sending'; readonly key: string; readonly runId: string; readonly part: Outbound }
  | { readonly kind: 'sent'; readonly key: string; readonly messageId: string }
  | { readonly kind: 'lost'; readonly key: string; readonly problem: string };

/**
 * A preview is a part beside the order: stored before it is shown, its platform id after. False when it must not be shown
 * yet, and is not stored: what is still to be sent in the conversation was said before it.
 */
export const recordPreview: StoreCommand<PreviewStep, boolean> = {
  name: 'recordPreview',
  run: async (tx, step) => {
    switch (step.kind) {
      case 'sending': {
        const { route, conversationKey, place } = await takePlace(tx, step.part.route);
        if (await headPart.first(tx, { conversationKey })) return false;
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
        return true;
      }
      case 'sent':
        await confirmPreview(tx, step.key, step.messageId);
        return true;
      case 'lost':
        await failPreview(tx, step.key, step.problem);
        return true;
      default:
        return step satisfies never;
    }
  },
};
