import type { StoreQuery, Tx } from '../base/command.ts';

/** A message on its platform. */
export type MessagePlace = { readonly conversationKey: string; readonly messageId: string };

/** Which of these messages the bot sent itself, as far as their receipts tell; in the order of the question. */
export const readOwnMessages: StoreQuery<{ readonly places: readonly MessagePlace[] }, readonly boolean[]> = {
  query: 'readOwnMessages',
  run: async (tx, { places }) => {
    const own: boolean[] = [];
    for (const place of places) own.push((await readPartKey(tx, place)) !== undefined);
    return own;
  },
};

/** Key of the part that was sent as this message; undefined when the bot didn't send it. */
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
