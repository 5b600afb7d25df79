import { messageId, partKey } from '#contracts/ids.ts';
import type { Outbound } from '#contracts/outbound.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { readRow } from '../base/row-access.ts';
import { lockLane } from '../rows/lane.ts';
import { headPart } from './claim-delivery.ts';
import { closePreview, confirmPreview, failPreview, insertPart, storePreview, takePlace } from './part.ts';
import { ownOf } from './record-send.ts';

export type PreviewStep =
  | { readonly kind: 'sending'; readonly key: string; readonly runId: string; readonly part: Outbound }
  | ({ readonly kind: 'sent' } & ShownPreview)
  | { readonly kind: 'lost'; readonly key: string; readonly problem: string };

/** A preview that its platform has accepted, as it is recorded. */
export type ShownPreview = {
  readonly key: string;
  readonly messageId: string;
  /** Lane and epoch of the holder that has shown it. */
  readonly laneKey: string;
  readonly epoch: number;
};

/**
 * Records a step of a preview, which is a part outside the delivery order: it is stored before it is shown, and its
 * platform id afterwards. Returns false, without storing it, when it must not be shown yet because earlier parts of the
 * conversation are still to be sent. Safe to repeat by its key: its platform id counts once, and not at all once an
 * answer has ended the preview.
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

/**
 * Records that the preview was shown. Removes it if another holder has the lane: that one didn't find the preview and
 * writes the answer again, so both would be shown.
 */
async function settleSent(
  tx: Tx,
  { key, messageId: shown, laneKey, epoch }: ShownPreview,
): Promise<'stands' | 'removed' | 'known'> {
  const lane = await lockLane(tx, laneKey);
  if (!(await confirmPreview(tx, key, shown))) return 'known';
  if (!lane || lane.epoch === epoch) return 'stands';
  const route = json.route((await readRow(tx, 'outbox', key, ['route'])).route);
  await closePreview(tx, key);
  const content = { kind: 'delete', messageId: messageId(shown) } as const;
  await insertPart(tx, { key: `${key}:removed`, route, content, purpose: 'notice' });
  return 'removed';
}

/** A preview that its platform may have; `since`: when it was sent, ms. */
export type UnknownPreview = { readonly part: Outbound; readonly since: number };

/** Reads the run's latest preview that may or may not be shown and that no answer has taken over. */
export const readUnknownPreview: StoreQuery<{ readonly runId: string }, UnknownPreview | undefined> = {
  query: 'readUnknownPreview',
  run: async (tx, { runId }) => {
    const row = await tx.db
      .selectFrom('outbox')
      .select(['key', 'route', 'content', 'createdAt'])
      .where('runId', '=', runId)
      .where('purpose', '=', 'preview')
      .where('state', '=', 'unknown')
      .where('endedAt', 'is', null)
      .orderBy('createdAt', 'desc')
      .executeTakeFirst();
    if (!row) return undefined;
    // `storePreview` has written it, so it is a text.
    const content = json.outbound(row.content) as Outbound['content'];
    return {
      part: { key: partKey(row.key), route: json.route(row.route), content },
      since: row.createdAt,
    };
  },
};

/** A preview that was looked for. */
export type FoundPreview = Omit<ShownPreview, 'messageId'> & {
  /** The bot's messages that may be the preview, oldest first; none: it never arrived. */
  readonly messageIds: readonly string[];
};

/** Records what was found; returns the preview if it is shown and still the holder's. Safe to repeat by its key. */
export const adoptPreview: StoreCommand<
  FoundPreview,
  { readonly key: string; readonly messageId: string } | undefined
> = {
  name: 'adoptPreview',
  run: async (tx, { messageIds, ...preview }) => {
    const { key } = preview;
    const { conversationKey } = await readRow(tx, 'outbox', key, ['conversationKey']);
    const found = await ownOf(tx, { conversationKey, partKey: key }, messageIds);
    if (found === undefined) {
      await failPreview(tx, key, 'it was cut off and had not arrived');
      return undefined;
    }
    const shown = await settleSent(tx, { ...preview, messageId: found });
    return shown === 'stands' ? { key, messageId: found } : undefined;
  },
};
