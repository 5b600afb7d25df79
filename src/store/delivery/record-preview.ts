import { messageId } from '#contracts/ids.ts';
import type { Outbound } from '#contracts/outbound.ts';
import type { StoreCommand, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { lockLane } from '../rows/lane-row.ts';
import { headPart } from './claim-delivery.ts';
import { insertPart, takePlace } from './insert-part.ts';
import { closePreview, confirmPreview, failPreview, storePreview } from './part-states.ts';

export type PreviewStep =
  | { readonly kind: 'sending'; readonly key: string; readonly runId: string; readonly part: Outbound }
  | SentPreview
  | { readonly kind: 'lost'; readonly key: string; readonly problem: string };

type SentPreview = {
  readonly kind: 'sent';
  readonly key: string;
  readonly messageId: string;
  /** The lane and epoch of the holder that has shown it. */
  readonly laneKey: string;
  readonly epoch: number;
};

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
        await settleSent(tx, step);
        return true;
      case 'lost':
        await failPreview(tx, step.key, step.problem);
        return true;
      default:
        return step satisfies never;
    }
  },
};

/** Another holder, which has not found it, writes its answer anew: the message would stay beside that. */
async function settleSent(tx: Tx, { key, messageId: shown, laneKey, epoch }: SentPreview): Promise<void> {
  const lane = await lockLane(tx, laneKey);
  await confirmPreview(tx, key, shown);
  if (!lane || lane.epoch === epoch) return;
  const preview = tx.db.selectFrom('outbox').select('route').where('key', '=', key);
  const route = json.route((await preview.executeTakeFirstOrThrow()).route);
  await closePreview(tx, key);
  const content = { kind: 'delete', messageId: messageId(shown) } as const;
  await insertPart(tx, { key: `${key}:removed`, route, content, purpose: 'notice' });
}
