import { sql } from 'kysely';
import type { ConversationId } from '#contracts/ids.ts';
import type { StoreQuery, Tx } from '../base/command.ts';

/** A conversation and its anchor. */
export type Anchor = readonly [conversation: ConversationId, anchor: string];

/**
 * Moves anchors, each only forward, so a batch that is stored again or late changes nothing. Anchors are decimal
 * numbers as text, so the longer one is the later one.
 */
export async function moveAnchors(tx: Tx, account: string, anchors: readonly Anchor[]): Promise<void> {
  for (const [conversation, anchor] of anchors) {
    await tx.db
      .insertInto('anchors')
      .values({ account, conversation, anchor })
      .onConflict((c) => c.columns(['account', 'conversation']).doUpdateSet({ anchor }).where(isLater))
      .execute();
  }
}

const isLater = sql<boolean>`(length(excluded."anchor"), excluded."anchor") > (length("anchors"."anchor"), "anchors"."anchor")`;

/** Reads the anchor of each of the account's conversations, for the process that has just claimed the account. */
export const readAnchors: StoreQuery<{ readonly account: string }, readonly Anchor[]> = {
  query: 'readAnchors',
  run: async (tx, { account }) => {
    const rows = await tx.db
      .selectFrom('anchors')
      .select(['conversation', 'anchor'])
      .where('account', '=', account)
      .execute();
    return rows.map((row): Anchor => [row.conversation as ConversationId, row.anchor]);
  },
};
