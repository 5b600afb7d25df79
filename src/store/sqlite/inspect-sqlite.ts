import BetterSqlite3 from 'better-sqlite3';
import { compareSteps, type StoreReport } from '../store-report.ts';

/** Reads every page of the file once: seconds for a gigabyte. */
export function inspectSqlite(file: string): StoreReport {
  let connection: BetterSqlite3.Database | undefined;
  try {
    connection = new BetterSqlite3(file, { readonly: true });
    const [first] = connection.pragma('quick_check(1)') as readonly { readonly quick_check: string }[];
    if (first?.quick_check !== 'ok') return { kind: 'damaged', reason: first?.quick_check ?? 'no answer' };
    return { kind: 'found', detail: file, ...compareSteps(appliedSteps(connection)) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const isDamaged = code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT');
    return { kind: isDamaged ? 'damaged' : 'unreachable', reason };
  } finally {
    connection?.close();
  }
}

function appliedSteps(connection: BetterSqlite3.Database): readonly string[] {
  const hasTable = connection.prepare("select 1 from sqlite_master where name = 'kysely_migration'").get();
  if (hasTable === undefined) return [];
  return connection.prepare('select name from kysely_migration order by name').pluck().all() as string[];
}
