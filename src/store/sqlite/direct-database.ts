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
 * Returns Kysely over one SQLite connection whose owner begins and ends the transactions. Each statement runs
 * immediately, without the locks and hand-overs with which Kysely shares a connection, which account for half of its
 * allocations. Close the connection, not this.
 */
export function directDatabase(connection: BetterSqlite3.Database): Pick<Tx, 'db' | 'inPlace'> {
  const prepare = cachedStatements(connection);
  const database = cacheStatements(connection, prepare);
  const dialect = new SqliteDialect({ database });
  const executor = new DirectExecutor(dialect, database);
  const driver = dialect.createDriver();
  const db = new Kysely<Tables>({ config: { dialect }, dialect, driver, executor });
  // Bypasses Kysely, which wraps each statement in three promises.
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
    // The caller knows the type of the rows from the query that it built.
    if (statement.reader) return { rows: statement.all(parameters) as Row[] };
    const { changes } = statement.run(parameters);
    return { rows: [], numAffectedRows: BigInt(changes) };
  }
}

/**
 * Writes parameters as `+?`. SQLite estimates from the bound values how many rows a condition leaves, and prepares such
 * a statement again each time it gets values, which took longer than most of Parley's queries. The sign prevents that
 * and changes nothing else.
 */
class StableQueryCompiler extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return '+?';
  }
}
