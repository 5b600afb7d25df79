import type { StoreQuery } from '../base/command.ts';
import { oneOf } from '../base/one-of.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';

/** Facts that intake needs about a conversation. */
export type ConversationFacts = {
  readonly key: string;
  /** The id from which its session key is derived. */
  readonly canonicalId: string | undefined;
  readonly activation: 'mention' | 'always' | undefined;
  /** An owner has admitted this group, regardless of the configuration. */
  readonly isAdmitted: boolean;
};

/** Reads the facts that the mention gate needs about a batch's conversations; none for those without a row. */
export const readConversationFacts: StoreQuery<
  { readonly keys: readonly string[] },
  readonly ConversationFacts[]
> = {
  query: 'readConversationFacts',
  run: async (tx, { keys }) => {
    const rows = await conversationRows.all(tx, { keys: JSON.stringify(keys) });
    return rows.map((row) => ({
      key: row.key,
      canonicalId: row.canonicalId ?? undefined,
      activation: row.activation === 'always' || row.activation === 'mention' ? row.activation : undefined,
      isAdmitted: row.admittedBy !== null,
    }));
  },
};

const conversationRows = prepared((db, of: QueryParams<{ keys: string }>, dialect) =>
  db
    .selectFrom('conversations')
    .select(['key', 'canonicalId', 'activation', 'admittedBy'])
    .where('key', ...oneOf(of.keys, dialect)),
);
