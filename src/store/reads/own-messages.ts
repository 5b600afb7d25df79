import type { StoreQuery } from '../base/command.ts';

/** A message on its platform. */
export type MessagePlace = { readonly conversationKey: string; readonly messageId: string };

/** Which of these messages the bot sent itself, as far as their receipts tell; in the order of the question. */
export const readOwnMessages: StoreQuery<{ readonly places: readonly MessagePlace[] }, readonly boolean[]> = {
  query: 'readOwnMessages',
  run: async (tx, { places }) => {
    const own: boolean[] = [];
    for (const { conversationKey, messageId } of places) {
      const receipt = await tx.db
        .selectFrom('receipts')
        .select('partKey')
        .where('conversationKey', '=', conversationKey)
        .where('messageId', '=', messageId)
        .executeTakeFirst();
      own.push(receipt !== undefined);
    }
    return own;
  },
};
