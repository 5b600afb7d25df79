import type BetterSqlite3 from 'better-sqlite3';
import type { SqliteDatabase, SqliteStatement } from 'kysely';

/** Lists of values give a text for each length: beyond so many the oldest makes room, be it prepared anew. */
const mostStatements = 500;

/** Prepares each statement once: our queries are few and their text is stable. */
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

/** The connection as Kysely uses it. */
export function cacheStatements(db: BetterSqlite3.Database, prepare = cachedStatements(db)): SqliteDatabase {
  return {
    close: () => db.close(),
    // better-sqlite3 takes one array of bindings exactly as Kysely passes it.
    prepare: (sql) => prepare(sql) as unknown as SqliteStatement,
  };
}
