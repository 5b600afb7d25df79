import { sql } from 'kysely';
import type { Usage } from '#contracts/model.ts';
import type { StoreQuery } from '../base/command.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { findRow, sumOf } from '../base/row-access.ts';
import { senderRef } from '../items/item-change.ts';
import { titleSessionOf } from '../lanes/titles.ts';

/** Calls of one model, with their tokens and cost in micro-dollars. */
export type ModelUsage = Usage & { readonly model: string; readonly calls: number; readonly cost: number };

/** A session's cost, micro-dollars, and what it was spent on. */
export type SessionUsage = {
  /** Total cost, including sub-agents. */
  readonly cost: number;
  /** Its own calls, including those for its title and summaries, the most expensive model first. */
  readonly models: readonly ModelUsage[];
  /** The share of the cost that all its ended descendant sub-agents account for. */
  readonly childrenCost: number;
  /** Calls of unknown cost, which count at their upper bound. */
  readonly unsure: number;
};

/** Reads a session's usage; undefined if there is no such session. */
export const readUsage: StoreQuery<{ readonly sessionId: string }, SessionUsage | undefined> = {
  query: 'readUsage',
  run: async (tx, { sessionId }) => {
    const session = await findRow(tx, 'sessions', sessionId, ['cost']);
    if (!session) return undefined;
    const rows = await tx.db
      .selectFrom('sessionUsage')
      .select('model')
      .select([sumOf('calls'), sumOf('cost'), sumOf('inputTokens'), sumOf('outputTokens')])
      .select([sumOf('cacheReadTokens'), sumOf('cacheWriteTokens'), sumOf('unsure')])
      .where('sessionId', 'in', [sessionId, titleSessionOf(sessionId)])
      .groupBy('model')
      .orderBy('cost', 'desc')
      .orderBy('model')
      .execute();
    return {
      cost: session.cost,
      models: rows.map(({ unsure: _, ...row }) => row),
      childrenCost: (await costBelow.one(tx, { sessionId })).cost,
      unsure: rows.reduce((all, { unsure }) => all + unsure, 0),
    };
  },
};

const costBelow = prepared(
  (_, of: QueryParams<{ sessionId: string }>) => sql<{ readonly cost: number }>`
    with recursive below(id, cost) as (
      select id, cost from children where "parentSessionId" = ${of.sessionId}
      union all
      select children.id, children.cost from children join below on children."parentSessionId" = below.id
    )
    select cast(coalesce(sum(cost), 0) as bigint) as cost from below`,
);

/** Everyone to whom a run's model calls are charged. */
type Payer = {
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
