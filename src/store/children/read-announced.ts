import type { StoreQuery } from '../base/command.ts';

/** Says whether the run has taken an announcement that a sub-agent has ended. */
export const readAnnounced: StoreQuery<{ readonly runId: string }, boolean> = {
  query: 'readAnnounced',
  run: async (tx, { runId }) => {
    const row = await tx.db
      .selectFrom('inbox')
      .select('id')
      .where('runId', '=', runId)
      .where('source', '=', 'child')
      .where('sourceKey', 'like', 'child:%')
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  },
};
