import type { StoreQuery } from '../base/command.ts';
import { json } from '../base/json.ts';
import { readRow } from '../base/row-by-key.ts';
import { bundleKey, splitTextName } from './accept-item.ts';

/** Where a message enters, and whose it is. */
export type SplitTextOf = {
  readonly laneKey: string;
  readonly conversationKey: string;
  readonly senderId: string;
};

/** So many messages of the lane back: the pieces of a text come within seconds. */
const lookBack = 50;

/** Reads when the sender last sent a piece of a text that may go on, ms; undefined when none is among the lane's last messages. */
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
    // Only this one's words are read: those of fifty messages may be megabytes, and every command asks.
    return json.content((await readRow(tx, 'inbox', piece.id, ['content'])).content).sentAt;
  },
};
