import type BetterSqlite3 from 'better-sqlite3';
import type { SqliteDatabase, SqliteStatement } from 'kysely';

/**
 * How many statements are kept. A query with a list of values has a different text for each length, so over this limit
 * the oldest is dropped; if needed, it is prepared again.
 */
const mostStatements = 500;

/** Prepares each statement once, since Parley's queries are few and their texts are stable. */
export function cachedStatements(db: BetterSqlite3.Database): (sql: string) => BetterSqlite3.Statement {
  const statements = new Map<string, BetterSqlite3.Statement>();
  return (sql) => {
    const known = statements.get(sql);
    if (known) return known;
    const made = db.prepare(sql);
    const [oldest] = statements.keys();
    if (oldest !== undefined && statements.size >= mostStatements) statements.delete(oldest);
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
