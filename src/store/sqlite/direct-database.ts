import type BetterSqlite3 from 'better-sqlite3';
import {
  type CompiledQuery,
  DefaultQueryExecutor,
  Kysely,
  type QueryResult,
  type SqliteDatabase,
  SqliteDialect,
  SqliteQueryCompiler,
} from 'kysely';
import type { InPlaceStatements, Tx } from '../base/command.ts';
import { notShared } from '../base/not-shared.ts';
import type { Tables } from '../base/tables.ts';
import { cachedStatements, cacheStatements } from './cached-database.ts';

/**
 * Kysely over one SQLite connection whose owner says himself where a transaction begins and ends. A
 * statement runs as soon as it is asked for: without the locks and hand-overs by which Kysely shares a
 * connection, and that make up half of what it allocates. `close` the connection, not this.
 */
export function directDatabase(connection: BetterSqlite3.Database): Pick<Tx, 'db' | 'inPlace'> {
  const prepare = cachedStatements(connection);
  const database = cacheStatements(connection, prepare);
  const dialect = new SqliteDialect({ database });
  const executor = new DirectExecutor(dialect, database);
  const driver = dialect.createDriver();
  const db = new Kysely<Tables>({ config: { dialect }, dialect, driver, executor });
  // Kysely wraps a statement in three promises.
  const inPlace: InPlaceStatements = {
    all: (sql, parameters) => prepare(sql).all(parameters),
    first: (sql, parameters) => prepare(sql).get(parameters),
    run: (sql, parameters) => prepare(sql).run(parameters).changes,
  };
  return { db, inPlace };
}

class DirectExecutor extends DefaultQueryExecutor {
  readonly #database: SqliteDatabase;

  constructor(dialect: SqliteDialect, database: SqliteDatabase) {
    const noSharing = { provideConnection: () => Promise.reject(notShared()) };
    super(new StableQueryCompiler(), dialect.createAdapter(), noSharing);
    this.#database = database;
  }

  override async executeQuery<Row>({ sql, parameters }: CompiledQuery<unknown>): Promise<QueryResult<Row>> {
    const statement = this.#database.prepare(sql);
    // Its caller knows the type of the rows from the query it has built.
    if (statement.reader) return { rows: statement.all(parameters) as Row[] };
    const { changes } = statement.run(parameters);
    return { rows: [], numAffectedRows: BigInt(changes) };
  }
}

/**
 * SQLite guesses from the bound values how many rows a condition leaves, and prepares such a statement
 * anew each time it gets values: that took longer than most of our queries. It does not look behind the
 * sign, which changes nothing else.
 */
class StableQueryCompiler extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return '+?';
  }
}
