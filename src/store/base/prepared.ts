import { type Compilable, type CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely';
import { ParleyError } from '#contracts/errors.ts';
import type { Tx } from './command.ts';
import type { Tables } from './tables.ts';

/** Placeholder in a prepared query for the value of that name. */
export type QueryParams<Values> = { readonly [Name in keyof Values]: RawBuilder<Values[Name]> };

/** A query whose text is made once; afterwards only the values change. Throws what the database throws. */
export type PreparedQuery<Values, Row> = {
  all(tx: Tx, values: Values): Promise<readonly Row[]>;
  first(tx: Tx, values: Values): Promise<Row | undefined>;
  /** The first row; a query that must have one throws `internal` without. */
  one(tx: Tx, values: Values): Promise<Row>;
  /** How many rows it has changed. */
  run(tx: Tx, values: Values): Promise<number>;
};

/**
 * Building and compiling a query takes Kysely longer than SQLite takes to answer it, so the queries that
 * every message needs are prepared:
 *
 *     const laneByKey = prepared((db, of: QueryParams<{ key: string }>) =>
 *       db.selectFrom('lanes').selectAll().where('key', '=', of.key),
 *     );
 *     const lane = await laneByKey.first(tx, { key });
 *
 * `build` runs once for each dialect. What it reads besides its slots must never change.
 */
export function prepared<Values, Row>(
  build: (db: Kysely<Tables>, of: QueryParams<Values>, dialect: Tx['dialect']) => Compilable<Row>,
): PreparedQuery<Values, Row> {
  const plans: { [Dialect in Tx['dialect']]?: CompiledQuery<Row> } = {};
  const execute = ({ db, dialect }: Tx, values: Values) => {
    const plan = plans[dialect] ?? build(db, slots as QueryParams<Values>, dialect).compile();
    plans[dialect] = plan;
    return db.executeQuery(fill(plan, values));
  };
  return {
    all: async (tx, values) => (await execute(tx, values)).rows,
    first: async (tx, values) => (await execute(tx, values)).rows[0],
    one: async (tx, values) => {
      const { rows } = await execute(tx, values);
      if (rows[0] === undefined)
        throw new ParleyError('internal', `No row found by ${plans[tx.dialect]?.sql}`);
      return rows[0];
    },
    run: async (tx, values) => Number((await execute(tx, values)).numAffectedRows ?? 0),
  };
}

class Slot {
  readonly name: PropertyKey;

  constructor(name: PropertyKey) {
    this.name = name;
  }
}

/** Every name has its slot; which names there are is a matter of types. */
const slots: unknown = new Proxy({}, { get: (_, name) => sql.val(new Slot(name)) });

function fill<Values, Row>(plan: CompiledQuery<Row>, values: Values): CompiledQuery<Row> {
  const bind = (parameter: unknown) =>
    parameter instanceof Slot ? values[parameter.name as keyof Values] : parameter;
  return { ...plan, parameters: plan.parameters.map(bind) };
}
