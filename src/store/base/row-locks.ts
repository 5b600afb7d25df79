/**
 * Rows that a transaction has until its end. All steps lock them in one order, or two could wait for each other until
 * PostgreSQL undoes one of them, a second later: the row of all approvals or of all links; accounts by key; lanes by depth and
 * key, where one that is made counts as locked; classes and trees of sub-agents; questions; conversations; parts. A step that
 * has a conversation already waits for no lane.
 */
import type { Compilable, CompiledQuery, Kysely, SelectQueryBuilder } from 'kysely';
import type { Tx } from './command.ts';
import { type PreparedQuery, prepared, type QueryParams } from './prepared.ts';
import type { Tables } from './tables.ts';

type Rows<Row> = Compilable<Row> & Pick<SelectQueryBuilder<Tables, keyof Tables, Row>, 'forUpdate'>;

export type LockingQuery<Values, Row> = Pick<PreparedQuery<Values, Row>, 'all' | 'first' | 'one'>;

/**
 * Like `prepared`, and the rows belong to the transaction until its end. The one writer of SQLite has
 * them all anyway. PostgreSQL may block on the lock, so `tx.now` is refreshed once it is granted: a lease
 * that is judged or begun by an earlier time would be over as it begins.
 */
export function locking<Values, Row>(
  build: (db: Kysely<Tables>, of: QueryParams<Values>, dialect: Tx['dialect']) => Rows<Row>,
): LockingQuery<Values, Row> {
  const query = prepared<Values, Row>((db, of, dialect) => ({
    compile: () => planOf(dialect, build(db, of, dialect)),
  }));
  return {
    all: async (tx, values) => (await query.all(tx, values)).map((row) => withLockTime(tx, row)),
    first: async (tx, values) => {
      const row = await query.first(tx, values);
      return row && withLockTime(tx, row);
    },
    one: async (tx, values) => withLockTime(tx, await query.one(tx, values)),
  };
}

/** The same for a query that is another one each time. */
export async function lockRows<Row>(tx: Tx, query: Rows<Row>): Promise<readonly Row[]> {
  const { rows } = await tx.db.executeQuery(planOf(tx.dialect, query));
  return rows.map((row) => withLockTime(tx, row));
}

/** The clock stands outside of the part that locks: PostgreSQL computes a column before it waits for the row. */
function planOf<Row>(dialect: Tx['dialect'], query: Rows<Row>): CompiledQuery<Row> {
  if (dialect !== 'postgres') return query.compile();
  const plan = query.forUpdate().compile() as CompiledQuery<Row>;
  return {
    ...plan,
    sql: `with "locked" as materialized (${plan.sql}) select "locked".*, (extract(epoch from clock_timestamp()) * 1000)::bigint as "lockedAt" from "locked"`,
  };
}

/** The row as it was asked for, and `tx.now` at the time it was locked. */
function withLockTime<Row>(tx: Tx, row: Row): Row {
  if (tx.advanceNow === undefined) return row;
  const { lockedAt, ...asked } = row as Row & { readonly lockedAt: number };
  tx.advanceNow?.(lockedAt);
  return asked as Row;
}
