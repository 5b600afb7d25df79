import type { StoreQuery } from '../../src/store/base/command.ts';
import { json } from '../../src/store/base/json.ts';

/** Reads what Parley has said in a conversation, oldest first. */
export const saidIn: StoreQuery<string, readonly string[]> = {
  query: 'saidIn',
  run: async (tx, conversation) => {
    const rows = await tx.db
      .selectFrom('outbox')
      .select('content')
      .where('conversationKey', '=', `test/bot/${conversation}`)
      .orderBy('place')
      .execute();
    return rows.map((row) => {
      const content = json.outbound(row.content);
      return content.kind === 'text' ? content.text.text : content.kind;
    });
  },
};
