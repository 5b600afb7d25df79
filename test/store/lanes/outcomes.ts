import type { StoreQuery } from '../../../src/store/base/command.ts';

/** Reads the outcomes of a conversation's messages, in order: `answered`, `failed: delivery failed` … */
export const readOutcomes: StoreQuery<{ readonly conversationKey: string }, readonly string[]> = {
  query: 'readOutcomes',
  run: async (tx, { conversationKey }) => {
    const rows = await tx.db
      .selectFrom('inbox')
      .select(['outcome', 'outcomeReason'])
      .where('conversationKey', '=', conversationKey)
      .orderBy('seq')
      .execute();
    return rows.map(({ outcome, outcomeReason }) =>
      [outcome ?? 'none', ...(outcomeReason === null ? [] : [outcomeReason])].join(': '),
    );
  },
};
