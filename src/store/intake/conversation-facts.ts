import type { StoreQuery } from '../command.ts';

export type ConversationFacts = {
  readonly key: string;
  /** The id its session key is made of. */
  readonly canonicalId: string | undefined;
  readonly activation: 'mention' | 'always' | undefined;
};

/** What the gate has to know of the conversations of a batch. Those without a row have no facts. */
export const readConversationFacts: StoreQuery<
  { readonly keys: readonly string[] },
  readonly ConversationFacts[]
> = {
  query: 'readConversationFacts',
  run: async (tx, { keys }) => {
    const rows = await tx.db
      .selectFrom('conversations')
      .select(['key', 'canonicalId', 'activation'])
      .where('key', 'in', keys)
      .execute();
    return rows.map((row) => ({
      key: row.key,
      canonicalId: row.canonicalId ?? undefined,
      activation: row.activation === 'always' || row.activation === 'mention' ? row.activation : undefined,
    }));
  },
};
