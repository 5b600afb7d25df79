import type BetterSqlite3 from 'better-sqlite3';
import {
  type CompiledQuery,
  DefaultQueryExecutor,
  Kysely,
  type QueryResult,
  type SqliteDatabase,
  SqliteDialect,
  SqliteQueryCompiler,
  type SqliteStatement,
} from 'kysely';
import type { InPlaceStatements, Tx } from '../base/command.ts';
import { notShared } from '../base/prepared.ts';
import type { Tables } from '../base/tables.ts';

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

/**
 * How many statements are kept. A query with a list of values has a different text for each length, so over this limit
 * the oldest is dropped; if needed, it is prepared again.
 */
const maxStatements = 500;

/** Prepares each statement once, since Parley's queries are few and their texts are stable. */
export function cachedStatements(db: BetterSqlite3.Database): (sql: string) => BetterSqlite3.Statement {
  const statements = new Map<string, BetterSqlite3.Statement>();
  return (sql) => {
    const known = statements.get(sql);
    if (known) return known;
    const made = db.prepare(sql);
    const [oldest] = statements.keys();
    if (oldest !== undefined && statements.size >= maxStatements) statements.delete(oldest);
    statements.set(sql, made);
    return made;
  };
}

/** Returns the connection in the form that Kysely uses. */
export function cacheStatements(db: BetterSqlite3.Database, prepare = cachedStatements(db)): SqliteDatabase {
  return {
    close: () => db.close(),
    // better-sqlite3 takes one array of bindings exactly as Kysely passes it.
    prepare: (sql) => prepare(sql) as unknown as SqliteStatement,
  };
}
