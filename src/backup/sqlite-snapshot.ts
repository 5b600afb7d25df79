import { chmodSync } from 'node:fs';
import BetterSqlite3 from 'better-sqlite3';
import { ParleyError } from '#contracts/errors.ts';
import { syncFile } from './durable-files.ts';
import type { DatabaseRecord, RestoreNote } from './manifest.ts';

/**
 * Writes one consistent copy of a SQLite database that others may be writing to: VACUUM INTO reads a single commit and
 * holds nobody up. The copy is one file, on the disk, and was read back. Throws ParleyError when it isn't intact.
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

/** Reads every page of a database that nobody uses, and counts its rows. Throws ParleyError when it isn't intact. */
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

/** Names its restore in a database that nobody uses: the next start acts on it. */
export function noteRestore(file: string, { id, madeAt }: RestoreNote): void {
  const connection = new BetterSqlite3(file, { fileMustExist: true });
  try {
    // A file that has no schema yet has nothing to send either.
    if (readSteps(connection).length === 0) return;
    connection.prepare('insert into restores (id, "madeAt", "isActed") values (?, ?, 0)').run(id, madeAt);
  } finally {
    connection.close();
  }
}

/** Steps of the schema, in their order; none in a new file. */
export function readSteps(connection: BetterSqlite3.Database): string[] {
  const hasTable = connection.prepare("select 1 from sqlite_master where name = 'kysely_migration'").get();
  if (hasTable === undefined) return [];
  return connection.prepare('select name from kysely_migration order by name').pluck().all() as string[];
}

/** The tables of a database, in the order of their names; SQLite's own and Kysely's are left out. */
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
