import { createHash } from 'node:crypto';
import { type CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely';
import { ParleyError } from '#contracts/errors.ts';
import type { NamedStatement, RemoteStatements, Tx } from './command.ts';
import type { Tables } from './tables.ts';

/** Placeholders in a prepared query, one for each named value. */
export type QueryParams<Values> = { readonly [Name in keyof Values]: RawBuilder<Values[Name]> };

/** A Kysely query, or raw SQL. */
type BuiltQuery<Row> = { compile(db: Kysely<Tables>): CompiledQuery<Row> };

/** A query whose text is built once; afterwards only the values change. Throws the database's errors. */
export type PreparedQuery<Values, Row> = {
  all(tx: Tx, values: Values): Promise<readonly Row[]>;
  first(tx: Tx, values: Values): Promise<Row | undefined>;
  /** Returns the first row; throws `internal` when there is none. */
  one(tx: Tx, values: Values): Promise<Row>;
  /** Returns how many rows it has changed. */
  run(tx: Tx, values: Values): Promise<number>;
  /**
   * Writes without reporting how many rows have changed: the statement is sent to PostgreSQL in order with the
   * following ones, and its answer isn't awaited. Its error fails the transaction at the next answer, at the latest at
   * the commit.
   */
  post(tx: Tx, values: Values): Promise<void>;
};

type NamedQuery<Row> = CompiledQuery<Row> & NamedStatement;

/**
 * Building and compiling a query takes Kysely longer than SQLite takes to answer it, so the queries that
 * every message needs are prepared:
 *
 *     const laneByKey = prepared((db, of: QueryParams<{ key: string }>) =>
 *       db.selectFrom('lanes').selectAll().where('key', '=', of.key),
 *     );
 *     const lane = await laneByKey.first(tx, { key });
 *
 * `build` runs once for each dialect. Anything it reads besides its parameters must never change.
 */
export function prepared<Values, Row>(
  build: (db: Kysely<Tables>, of: QueryParams<Values>, dialect: Tx['dialect']) => BuiltQuery<Row>,
): PreparedQuery<Values, Row> {
  const plans: { [Dialect in Tx['dialect']]?: NamedQuery<Row> } = {};
  const planFor = (tx: Tx) => {
    const plan =
      plans[tx.dialect] ?? named(build(tx.db, slots as QueryParams<Values>, tx.dialect).compile(tx.db));
    plans[tx.dialect] = plan;
    return plan;
  };
  // The casts hold: the rows are those of the query that `build` returned.
  const all = async (tx: Tx, values: Values) => {
    const plan = planFor(tx);
    const parameters = bind(plan, values);
    if (tx.inPlace) return tx.inPlace.all(plan.sql, parameters) as readonly Row[];
    return (await remoteOf(tx).ask(plan, parameters)).rows as readonly Row[];
  };
  const first = async (tx: Tx, values: Values) => {
    const plan = planFor(tx);
    const parameters = bind(plan, values);
    if (tx.inPlace) return tx.inPlace.first(plan.sql, parameters) as Row | undefined;
    return (await remoteOf(tx).ask(plan, parameters)).rows[0] as Row | undefined;
  };
  return {
    all,
    first,
    one: async (tx, values) => {
      const row = await first(tx, values);
      if (row === undefined) throw new ParleyError('internal', `No row found by ${planFor(tx).sql}`);
      return row;
    },
    run: async (tx, values) => {
      const plan = planFor(tx);
      const parameters = bind(plan, values);
      if (tx.inPlace) return tx.inPlace.run(plan.sql, parameters);
      return (await remoteOf(tx).ask(plan, parameters)).changed;
    },
    post: async (tx, values) => {
      const plan = planFor(tx);
      const parameters = bind(plan, values);
      if (tx.inPlace) tx.inPlace.run(plan.sql, parameters);
      else remoteOf(tx).post(plan, parameters);
    },
  };
}

function remoteOf({ remote }: Tx): RemoteStatements {
  if (remote) return remote;
  throw new ParleyError('internal', 'A transaction has neither a file nor a server.');
}

function named<Row>(plan: CompiledQuery<Row>): NamedQuery<Row> {
  return { ...plan, statement: createHash('sha256').update(plan.sql).digest('base64url') };
}

class Slot {
  readonly name: PropertyKey;

  constructor(name: PropertyKey) {
    this.name = name;
  }
}

/** Provides a slot for every name; types restrict which names are used. */
const slots: unknown = new Proxy({}, { get: (_, name) => sql.val(new Slot(name)) });

/** Returns the query's parameters, with each slot replaced by its value. */
function bind<Values>({ parameters }: CompiledQuery, values: Values): readonly unknown[] {
  return parameters.map((parameter) =>
    parameter instanceof Slot ? values[parameter.name as keyof Values] : parameter,
  );
}

/** Returns the fault for Kysely trying to share a connection whose one user begins and ends its own transactions. */
export function notShared(): ParleyError {
  return new ParleyError(
    'internal',
    'This connection has one user; it begins no transaction through Kysely.',
  );
}
