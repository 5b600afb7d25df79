import type { StoreQuery, Tx } from '../base/command.ts';

/** A message on its platform. */
export type MessagePlace = { readonly conversationKey: string; readonly messageId: string };

/** Says for each of these messages, in order, whether the bot sent it, as far as receipts show. */
export const readOwnMessages: StoreQuery<{ readonly places: readonly MessagePlace[] }, readonly boolean[]> = {
  query: 'readOwnMessages',
  run: async (tx, { places }) => {
    const own: boolean[] = [];
    for (const place of places) own.push((await readPartKey(tx, place)) !== undefined);
    return own;
  },
};

/** Reads the key of the part that was sent as this message; undefined if the bot didn't send it. */
export async function readPartKey(
  tx: Tx,
  { conversationKey, messageId }: MessagePlace,
): Promise<string | undefined> {
  const receipt = await tx.db
    .selectFrom('receipts')
    .select('partKey')
    .where('conversationKey', '=', conversationKey)
    .where('messageId', '=', messageId)
    .executeTakeFirst();
  return receipt?.partKey;
}
