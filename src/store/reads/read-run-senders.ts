import type { StoreQuery } from '../base/command.ts';
import { senderRef } from '../items/item-change.ts';

/** Reads the people whose messages the top run of the child's tree took, as `<channel>:<peer>`. */
export const readRunSenders: StoreQuery<{ readonly childId: string }, readonly string[]> = {
  query: 'readRunSenders',
  run: async (tx, { childId }) => {
    const rows = await tx.db
      .selectFrom('children')
      .innerJoin('inbox', 'inbox.runId', 'children.treeId')
      .select(['inbox.account', 'inbox.senderId'])
      .where('children.id', '=', childId)
      .where('inbox.source', '=', 'platform')
      .where('inbox.transcriptId', 'is not', null)
      .execute();
    return [...new Set(rows.map(senderRef))];
  },
};
