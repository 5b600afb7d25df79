import type { Compilable, CompiledQuery, Kysely, SelectQueryBuilder } from 'kysely';
import { ParleyError } from '#contracts/errors.ts';
import type { Tx } from './command.ts';
import { fill, type Slots, slotsOf } from './prepared.ts';
import type { Tables } from './tables.ts';

type Rows<Row> = Compilable<Row> & Pick<SelectQueryBuilder<Tables, keyof Tables, Row>, 'forUpdate'>;

export type LockingQuery<Values, Row> = {
  /** In the order of the query, which is the order in which they are locked. */
  all(tx: Tx, values: Values): Promise<readonly Row[]>;
  first(tx: Tx, values: Values): Promise<Row | undefined>;
  /** The first row; a query that must have one throws `internal` without. */
  one(tx: Tx, values: Values): Promise<Row>;
};

/**
 * Like `prepared`, and the rows belong to the transaction until its end. The one writer of SQLite has
 * them all anyway. PostgreSQL may make it wait for somebody who stands still with the row in hand, so
 * `tx.now` is then what the clock said *behind* the wait: a lease that is judged or begun by the time
 * from before it would be over as it begins.
 */
export function locking<Values, Row>(
  build: (db: Kysely<Tables>, of: Slots<Values>) => Rows<Row>,
): LockingQuery<Values, Row> {
  const plans: { [Dialect in Tx['dialect']]?: CompiledQuery<Row> } = {};
  const all = (tx: Tx, values: Values) => {
    const plan = plans[tx.dialect] ?? planOf(tx, build(tx.db, slotsOf<Values>()));
    plans[tx.dialect] = plan;
    return execute(tx, fill(plan, values));
  };
  return {
    all,
    first: async (tx, values) => (await all(tx, values))[0],
    one: async (tx, values) => {
      const [row] = await all(tx, values);
      if (row === undefined) throw new ParleyError('internal', `No row found by ${plans[tx.dialect]?.sql}`);
      return row;
    },
  };
}

/** The same for a query that is another one each time. */
export function lockRows<Row>(tx: Tx, query: Rows<Row>): Promise<readonly Row[]> {
  return execute(tx, planOf(tx, query));
}

/** The clock stands outside of the part that locks: PostgreSQL computes a column before it waits for the row. */
function planOf<Row>(tx: Tx, query: Rows<Row>): CompiledQuery<Row> {
  if (tx.dialect !== 'postgres') return query.compile();
  const plan = query.forUpdate().compile() as CompiledQuery<Row>;
  return {
    ...plan,
    sql: `with "locked" as materialized (${plan.sql}) select "locked".*, (extract(epoch from clock_timestamp()) * 1000)::bigint as "lockedAt" from "locked"`,
  };
}

async function execute<Row>(tx: Tx, plan: CompiledQuery<Row>): Promise<readonly Row[]> {
  const { rows } = await tx.db.executeQuery(plan);
  if (tx.waitedUntil === undefined) return rows;
  return rows.map((row) => {
    const { lockedAt, ...asked } = row as Row & { readonly lockedAt: number };
    tx.waitedUntil?.(lockedAt);
    return asked as Row;
  });
}
