import type { StoreQuery } from '../base/command.ts';
import { json } from '../base/json.ts';
import { findRow } from '../base/row-by-key.ts';
import { senderRef } from '../items/item-change.ts';

/** Everyone to whom a run's model calls are charged. */
export type Payer = {
  readonly treeId: string;
  /** The session at the top of the tree, since a sub-agent spends its parents' budget. */
  readonly sessionId: string;
  /** The agent of that session. */
  readonly topAgentId: string;
  /** Sender of the last message that the tree's top run took, as `<channel>:<peer>`; undefined if no person's. */
  readonly person: string | undefined;
  /** The identity that the person joined in chat. */
  readonly identity: string | undefined;
};

/** Reads to whom a run's model calls are charged. */
export const readPayer: StoreQuery<{ readonly runId: string }, Payer> = {
  query: 'readPayer',
  run: async (tx, { runId }) => {
    const { treeId, id, ancestors } = await tx.db
      .selectFrom('runs')
      .innerJoin('sessions', 'sessions.id', 'runs.sessionId')
      .select(['runs.treeId', 'sessions.id', 'sessions.ancestors'])
      .where('runs.id', '=', runId)
      .executeTakeFirstOrThrow();
    const [sessionId = id] = json.strings(ancestors);
    const top = await findRow(tx, 'sessions', sessionId, ['agentId']);
    const item = await tx.db
      .selectFrom('inbox')
      .select(['account', 'senderId'])
      .where('runId', '=', treeId)
      .where('source', '=', 'platform')
      .orderBy('seq', 'desc')
      .executeTakeFirst();
    const person = item && senderRef(item);
    const link = await tx.db
      .selectFrom('links')
      .select('identity')
      .where('peer', '=', person ?? '')
      .executeTakeFirst();
    return { treeId, sessionId, topAgentId: top?.agentId ?? '', person, identity: link?.identity };
  },
};
