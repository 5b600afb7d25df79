import type { StoreQuery } from '../base/command.ts';
import { json } from '../base/json.ts';

/** Reads the request that a person added to the command that began the run; undefined if there is none. */
export const readCompactHint: StoreQuery<{ readonly runId: string }, string | undefined> = {
  query: 'readCompactHint',
  run: async (tx, { runId }) => {
    const row = await tx.db
      .selectFrom('inbox')
      .select('content')
      .where('runId', '=', runId)
      .where('state', '=', 'taken')
      .executeTakeFirst();
    // Made by the command's `load`.
    const loaded = json.content(row?.content ?? '{}').command?.input as CompactInput | undefined;
    return loaded?.input?.hint;
  },
};

type CompactInput = { readonly input?: { readonly hint?: string } };
