import type { StoreQuery } from '../base/command.ts';
import { json } from '../base/json.ts';
import { readRow } from '../base/row-by-key.ts';
import { bundleKey, splitTextName } from './accept-item.ts';

/** The lane and conversation that a message enters, and its sender. */
export type SplitTextOf = {
  readonly laneKey: string;
  readonly conversationKey: string;
  readonly senderId: string;
};

/** How many of the lane's messages to look back: the pieces of a text arrive within seconds. */
const lookBack = 50;

/**
 * Reads when the sender last sent a piece of a text that may continue, ms since the epoch; undefined if the lane's last
 * messages contain none.
 */
export const readSplitText: StoreQuery<SplitTextOf, number | undefined> = {
  query: 'readSplitText',
  run: async (tx, { laneKey, conversationKey, senderId }) => {
    const rows = await tx.db
      .selectFrom('inbox')
      .select(['id', 'bundle'])
      .where('laneKey', '=', laneKey)
      .orderBy('seq', 'desc')
      .limit(lookBack)
      .execute();
    const name = bundleKey(splitTextName(senderId), conversationKey);
    const piece = rows.find(({ bundle }) => bundle === name);
    if (piece === undefined) return undefined;
    // Only this item's content is read: that of fifty messages may be megabytes, and every command runs this query.
    return json.content((await readRow(tx, 'inbox', piece.id, ['content'])).content).sentAt;
  },
};
