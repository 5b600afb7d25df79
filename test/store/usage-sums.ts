import { sql } from 'kysely';
import type { StoreQuery } from '../../src/store/base/command.ts';

type Sums = readonly Record<string, unknown>[];

/** Reads the stored sums of a session's model calls. */
export const readSums: StoreQuery<{ readonly sessionId: string }, Sums> = {
  query: 'readSums',
  run: (tx, { sessionId }) =>
    tx.db
      .selectFrom('sessionUsage')
      .selectAll()
      .where('sessionId', '=', sessionId)
      .orderBy('model')
      .orderBy('purpose')
      .execute(),
};

/** Computes the same sums from the calls that have ended. */
export const sumUp: StoreQuery<{ readonly sessionId: string }, Sums> = {
  query: 'sumUp',
  run: async (tx, { sessionId }) => {
    const sum = (column: string) => sql`cast(sum(${sql.ref(column)}) as bigint) as ${sql.ref(column)}`;
    const columns = ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens', 'cost'].map(sum);
    const { rows } = await sql<Record<string, unknown>>`
      select "sessionId", model, purpose, cast(count(*) as bigint) as calls,
        cast(sum(case when state = 'unknown' then 1 else 0 end) as bigint) as unsure, ${sql.join(columns)}
      from "modelCalls" where "sessionId" = ${sessionId} and state in ('settled', 'unknown')
      group by "sessionId", model, purpose order by model, purpose`.execute(tx.db);
    return rows;
  },
};
