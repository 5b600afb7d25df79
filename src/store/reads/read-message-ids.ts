import type { StoreQuery } from '../base/command.ts';
import { json } from '../base/json.ts';

/** Network message ids, by the transcript message that took them or was sent as them. */
export type MessageIds = ReadonlyMap<string, readonly string[]>;

/** Reads the network ids of transcript messages: of people's messages and of sent answers. */
export const readMessageIds: StoreQuery<{ readonly ids: readonly string[] }, MessageIds> = {
  query: 'readMessageIds',
  run: async (tx, { ids }) => {
    if (ids.length === 0) return new Map();
    const runs = tx.db.selectFrom('transcript').select('runId').where('id', 'in', ids);
    const heard = await tx.db
      .selectFrom('inbox')
      .select(['transcriptId', 'messageId'])
      .where('runId', 'in', runs)
      .where('transcriptId', 'in', ids)
      .orderBy('seq')
      .execute();
    const sent = await tx.db
      .selectFrom('outbox')
      .select(['answer', 'receipts'])
      .where('runId', 'in', runs)
      .where('answer', 'in', ids)
      .where('purpose', '=', 'reply')
      .where('state', '=', 'sent')
      .orderBy('place')
      .execute();
    const named = [
      ...heard.map(({ transcriptId, messageId }) => ({
        of: transcriptId,
        names: messageId ? [messageId] : [],
      })),
      ...sent.map(({ answer, receipts }) => ({ of: answer, names: json.strings(receipts) })),
    ];
    return new Map(
      [...Map.groupBy(named, ({ of }) => of ?? '')].map(([id, all]) => [
        id,
        all.flatMap(({ names }) => names),
      ]),
    );
  },
};
