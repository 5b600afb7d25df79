import type { StoreQuery } from '../base/command.ts';
import { json } from '../base/json.ts';
import { findRow } from '../base/row-by-key.ts';
import { senderRef } from '../items/item-change.ts';

/** Names whom a run's calls are charged to. */
export type Payer = {
  readonly treeId: string;
  /** The session at the top: a sub-agent spends its parents' budget. */
  readonly sessionId: string;
  /** Agent of that session. */
  readonly topAgentId: string;
  /** Whose message the run at the top of the tree took last, as `<channel>:<peer>`; undefined for nobody's. */
  readonly person: string | undefined;
  /** The identity that the person has joined in chat. */
  readonly identity: string | undefined;
};

/** Reads whom a run's calls are charged to. */
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
