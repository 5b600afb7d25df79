import { sql } from 'kysely';
import type { Usage } from '#contracts/model.ts';
import type { StoreQuery } from '../base/command.ts';

/** Calls of one model, with their tokens and their cost in micro-dollars. */
export type ModelUsage = Usage & { readonly model: string; readonly calls: number; readonly cost: number };

/** Cost of a session, micro-dollars, and what it was spent on. */
export type SessionUsage = {
  /** Sub-agents included. */
  readonly cost: number;
  /** Its own calls, the dearest model first. */
  readonly models: readonly ModelUsage[];
  /** Calls whose cost nobody knows: they count at their bound. */
  readonly unsure: number;
};

/** Reads what a session has used; undefined when there is none. */
export const readUsage: StoreQuery<{ readonly sessionId: string }, SessionUsage | undefined> = {
  query: 'readUsage',
  run: async (tx, { sessionId }) => {
    const session = await tx.db
      .selectFrom('sessions')
      .select('cost')
      .where('id', '=', sessionId)
      .executeTakeFirst();
    if (!session) return undefined;
    // Calls are found by their run, runs by what they have left in the transcript.
    const runs = tx.db
      .selectFrom('transcript')
      .select('runId')
      .distinct()
      .where('sessionId', '=', sessionId)
      .where('runId', 'is not', null);
    const sum = (column: keyof Usage | 'cost') =>
      sql<number>`cast(coalesce(sum(${sql.ref(column)}), 0) as bigint)`;
    const rows = await tx.db
      .selectFrom('modelCalls')
      .select(['model'])
      .select((eb) => [
        eb.cast<number>(eb.fn.countAll(), 'bigint').as('calls'),
        sum('cost').as('cost'),
        sum('inputTokens').as('inputTokens'),
        sum('outputTokens').as('outputTokens'),
        sum('cacheReadTokens').as('cacheReadTokens'),
        sum('cacheWriteTokens').as('cacheWriteTokens'),
        sql<number>`cast(sum(case when state = 'unknown' then 1 else 0 end) as bigint)`.as('unsure'),
      ])
      .where('runId', 'in', runs)
      .where('sessionId', '=', sessionId)
      .where('state', 'in', ['settled', 'unknown'])
      .groupBy('model')
      .orderBy('cost', 'desc')
      .orderBy('model')
      .execute();
    return {
      cost: session.cost,
      models: rows.map(({ unsure: _, ...row }) => row),
      unsure: rows.reduce((all, { unsure }) => all + unsure, 0),
    };
  },
};
