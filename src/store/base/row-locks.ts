/**
 * Rows that a transaction locks until its end. All steps lock them in one order; otherwise two steps could wait for
 * each other until PostgreSQL aborts one of them, a second later. The order: the row of all approvals or of all links;
 * accounts by key; lanes by depth and key, where making a lane counts as locking it; classes and trees of sub-agents;
 * questions; conversations; parts. A step that has already locked a conversation waits for no lane.
 */
import type { Compilable, CompiledQuery, Kysely, SelectQueryBuilder } from 'kysely';
import type { Tx } from './command.ts';
import { type PreparedQuery, prepared, type QueryParams } from './prepared.ts';
import type { Tables } from './tables.ts';

type Rows<Row> = Compilable<Row> & Pick<SelectQueryBuilder<Tables, keyof Tables, Row>, 'forUpdate'>;

export type LockingQuery<Values, Row> = Pick<PreparedQuery<Values, Row>, 'all' | 'first' | 'one'>;

/**
 * Does the same as `prepared`, and also locks the rows until the transaction ends. SQLite's single writer has all rows
 * anyway. PostgreSQL may block on the lock, so `tx.now` is refreshed once it is granted: by an earlier time, a new
 * lease could already have expired when it begins.
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

/** Does the same for a query whose text changes from call to call. */
export async function lockRows<Row>(tx: Tx, query: Rows<Row>): Promise<readonly Row[]> {
  const { rows } = await tx.db.executeQuery(planOf(tx.dialect, query));
  return rows.map((row) => withLockTime(tx, row));
}

/** Reads the clock outside the locking query, since PostgreSQL computes a column before it waits for the row. */
function planOf<Row>(dialect: Tx['dialect'], query: Rows<Row>): CompiledQuery<Row> {
  if (dialect !== 'postgres') return query.compile();
  const plan = query.forUpdate().compile() as CompiledQuery<Row>;
  return {
    ...plan,
    sql: `with "locked" as materialized (${plan.sql}) select "locked".*, (extract(epoch from clock_timestamp()) * 1000)::bigint as "lockedAt" from "locked"`,
  };
}

/** Returns the row as requested, and sets `tx.now` to the time it was locked. */
function withLockTime<Row>(tx: Tx, row: Row): Row {
  if (tx.advanceNow === undefined) return row;
  const { lockedAt, ...asked } = row as Row & { readonly lockedAt: number };
  tx.advanceNow?.(lockedAt);
  return asked as Row;
}
