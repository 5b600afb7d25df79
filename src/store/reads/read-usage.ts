import { sql } from 'kysely';
import type { Usage } from '#contracts/model.ts';
import type { StoreQuery } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { findRow } from '../base/row-by-key.ts';
import { sumOf } from '../base/sum-of.ts';
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
