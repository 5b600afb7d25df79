import type BetterSqlite3 from 'better-sqlite3';
import type { SqliteDatabase, SqliteStatement } from 'kysely';

/** Lets Kysely reuse prepared statements: our queries are few and their text is stable. */
export function cacheStatements(db: BetterSqlite3.Database): SqliteDatabase {
  const statements = new Map<string, SqliteStatement>();
  return {
    close: () => db.close(),
    prepare: (sql) => {
      const known = statements.get(sql);
      if (known) return known;
      // better-sqlite3 takes one array of bindings exactly as Kysely passes it.
      const made = db.prepare(sql) as unknown as SqliteStatement;
      if (statements.size < 500) statements.set(sql, made);
      return made;
    },
  };
}
