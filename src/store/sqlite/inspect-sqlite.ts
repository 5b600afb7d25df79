import BetterSqlite3 from 'better-sqlite3';
import { readSteps } from '../../backup/sqlite-snapshot.ts';
import { differencesOf } from '../migrate.ts';
import { compareSteps, type StoreReport, toolRefusals } from '../store-report.ts';
import { errorOf, faultOf } from './writer-messages.ts';

/** Inspects the file. Reads every page once, which takes seconds per gigabyte. */
export async function inspectSqlite(file: string): Promise<StoreReport> {
  let connection: BetterSqlite3.Database | undefined;
  try {
    const open = new BetterSqlite3(file, { readonly: true });
    connection = open;
    const [first] = connection.pragma('quick_check(1)') as readonly { readonly quick_check: string }[];
    if (first?.quick_check !== 'ok') return { kind: 'damaged', reason: first?.quick_check ?? 'no answer' };
    const taken = readSteps(connection);
    const steps = compareSteps(taken);
    const { misfits } = await differencesOf(askOn(open), 'sqlite', { taken });
    const withoutTools = misfits.length > 0 ? new Map() : refusalsIn(connection, steps.pending);
    return { kind: 'found', detail: file, ...steps, misfits, withoutTools };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const isDamaged = code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT');
    return { kind: isDamaged ? 'damaged' : 'unreachable', reason };
  } finally {
    connection?.close();
  }
}

/** Says whether a file's schema is what this version's steps make, so that a start would change nothing in it. */
export async function hasCurrentSchema(connection: BetterSqlite3.Database): Promise<boolean> {
  const taken = readSteps(connection);
  const { pending, unknown } = compareSteps(taken);
  if (pending.length + unknown.length > 0) return false;
  const { misfits, indexes } = await differencesOf(askOn(connection), 'sqlite', { taken });
  return misfits.length + indexes.length === 0;
}

function askOn(connection: BetterSqlite3.Database) {
  return (query: string) => connection.prepare<[], Record<string, unknown>>(query).all();
}

/** Reads the models that have refused tools; empty for a file with another schema. */
function refusalsIn(
  connection: BetterSqlite3.Database,
  pending: readonly string[],
): ReadonlyMap<string, number> {
  if (pending.length > 0) return new Map();
  const rows = connection.prepare<[], { subject: string; at: number }>(toolRefusals).all();
  return new Map(rows.map(({ subject, at }) => [subject, at]));
}

/** Reads which schema steps a file has applied, and nothing else. Throws ParleyError like opening the store. */
export function readSqliteSteps(file: string): readonly string[] {
  let connection: BetterSqlite3.Database | undefined;
  try {
    connection = new BetterSqlite3(file, { readonly: true });
    return readSteps(connection);
  } catch (error) {
    throw errorOf(faultOf(error, file));
  } finally {
    connection?.close();
  }
}
