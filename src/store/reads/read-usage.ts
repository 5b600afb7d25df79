import { sql } from 'kysely';
import type { Usage } from '#contracts/model.ts';
import type { StoreQuery } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { findRow } from '../base/row-by-key.ts';
import { sumOf } from '../base/sum-of.ts';
import { titleSessionOf } from '../lanes/titles.ts';

/** Calls of one model, with their tokens and their cost in micro-dollars. */
export type ModelUsage = Usage & { readonly model: string; readonly calls: number; readonly cost: number };

/** Cost of a session, micro-dollars, and what it was spent on. */
export type SessionUsage = {
  /** Sub-agents included. */
  readonly cost: number;
  /** Its own calls, with those for its title and its summaries, the dearest model first. */
  readonly models: readonly ModelUsage[];
  /** Part of the cost: that of all sub-agents below it which have ended. */
  readonly childrenCost: number;
  /** Calls whose cost nobody knows: they count at their bound. */
  readonly unsure: number;
};

/** Reads what a session has used; undefined when there is none. */
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
