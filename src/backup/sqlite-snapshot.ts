import { chmodSync } from 'node:fs';
import BetterSqlite3 from 'better-sqlite3';
import { ParleyError } from '#contracts/errors.ts';
import { syncFile } from './durable-files.ts';
import type { DatabaseRecord, RestoreNote } from './manifest.ts';

/**
 * Writes one consistent copy of a SQLite database that others may be writing to: VACUUM INTO reads a single commit and
 * blocks nobody. The copy is one file, flushed to disk and read back. Throws ParleyError if it isn't intact.
 */
export async function snapshotSqlite(source: string, target: string): Promise<DatabaseRecord> {
  const connection = new BetterSqlite3(source, { readonly: true, timeout: 10_000 });
  try {
    connection.prepare('VACUUM INTO ?').run(target);
  } finally {
    connection.close();
  }
  chmodSync(target, 0o600);
  await syncFile(target);
  return describeSqlite(target);
}

/** Reads every page of a database that isn't in use, and counts its rows. Throws ParleyError if it isn't intact. */
export function describeSqlite(file: string): DatabaseRecord {
  const connection = new BetterSqlite3(file, { fileMustExist: true });
  try {
    const [first] = connection.pragma('quick_check(1)') as readonly { readonly quick_check: string }[];
    if (first?.quick_check !== 'ok') throw damaged(file, first?.quick_check);
    return { kind: 'sqlite', file: 'parley.db', steps: readSteps(connection), rows: countRows(connection) };
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    throw damaged(file, error instanceof Error ? error.message : String(error));
  } finally {
    connection.close();
  }
}

/** Records the restore in a database that isn't in use; the next start acts on it. */
export function noteRestore(file: string, { id, madeAt }: RestoreNote): void {
  const connection = new BetterSqlite3(file, { fileMustExist: true });
  try {
    // A file without a schema has nothing to send either.
    if (readSteps(connection).length === 0) return;
    connection.prepare('insert into restores (id, "madeAt", "isActed") values (?, ?, 0)').run(id, madeAt);
  } finally {
    connection.close();
  }
}

/** Reads the applied schema migrations in order; empty for a new file. */
export function readSteps(connection: BetterSqlite3.Database): string[] {
  const hasTable = connection.prepare("select 1 from sqlite_master where name = 'kysely_migration'").get();
  if (hasTable === undefined) return [];
  return connection.prepare('select name from kysely_migration order by name').pluck().all() as string[];
}

/** Lists the tables of a database by name, without SQLite's own and Kysely's. */
export function tablesOf(connection: BetterSqlite3.Database): readonly string[] {
  const query = `select name from sqlite_master where type = 'table' and name not like 'sqlite\\_%' escape '\\'
    and name not like 'kysely\\_%' escape '\\' order by name`;
  return connection.prepare(query).pluck().all() as string[];
}

function countRows(connection: BetterSqlite3.Database): Record<string, number> {
  const count = (table: string) =>
    connection.prepare(`select count(*) from "${table}"`).pluck().get() as number;
  return Object.fromEntries(tablesOf(connection).map((table) => [table, count(table)]));
}

function damaged(file: string, reason = 'no answer'): ParleyError {
  return new ParleyError('store_unavailable', `The database in ${file} is damaged (${reason}).`);
}
