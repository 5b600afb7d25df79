import BetterSqlite3 from 'better-sqlite3';
import pg from 'pg';
import { ParleyError } from '#contracts/errors.ts';
import { readSteps, tablesOf } from '../../backup/sqlite-snapshot.ts';
import { readPostgresSteps } from './inspect-postgres.ts';

const batchRows = 500;

/**
 * Copies every row of a SQLite file, which must have no writer, into a PostgreSQL database with the same schema and no
 * rows. It uses one transaction, which commits only if every table has as many rows as in the file. Otherwise it throws
 * ParleyError and changes nothing. Returns the number of rows by table.
 */
export async function importSqlite(file: string, url: string): Promise<Readonly<Record<string, number>>> {
  const source = new BetterSqlite3(file, { readonly: true, fileMustExist: true });
  const target = new pg.Client({ connectionString: url });
  target.on('error', () => undefined);
  try {
    refuseOtherSchema(readSteps(source), await readPostgresSteps(url));
    await target.connect();
    await target.query('begin');
    // All tables are read as of the same commit.
    source.exec('begin');
    const copied: Record<string, number> = {};
    for (const table of tablesOf(source)) copied[table] = await copyTable(source, target, table);
    await target.query('commit');
    return copied;
  } finally {
    source.close();
    // Rolls back anything uncommitted.
    await target.end().catch(() => undefined);
  }
}

function refuseOtherSchema(source: readonly string[], target: readonly string[]): void {
  if (source.join() === target.join()) return;
  throw new ParleyError(
    'invalid_input',
    `The file's schema is ${source.at(-1) ?? 'empty'}, the database's is ${target.at(-1) ?? 'empty'}. Start this version of Parley once with the file, then import it.`,
  );
}

async function copyTable(source: BetterSqlite3.Database, target: pg.Client, table: string): Promise<number> {
  const name = pg.escapeIdentifier(table);
  if ((await countIn(target, name)) > 0)
    throw new ParleyError(
      'invalid_input',
      `The database already has rows in ${table}. Import into an empty one; nothing was changed.`,
    );
  let copied = 0;
  let batch: unknown[] = [];
  const insert = async () => {
    const rows = JSON.stringify(batch);
    await target
      .query(`insert into ${name} select * from json_populate_recordset(null::${name}, $1)`, [rows])
      .catch((cause: unknown) => {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new ParleyError(
          'internal',
          `A row of ${table} can't be copied: ${reason}. Nothing was changed.`,
          {
            cause,
          },
        );
      });
    copied += batch.length;
    batch = [];
  };
  for (const row of source.prepare(`select * from ${name}`).iterate()) {
    batch.push(row);
    if (batch.length === batchRows) await insert();
  }
  if (batch.length > 0) await insert();
  const there = await countIn(target, name);
  if (there === copied) return copied;
  throw new ParleyError('internal', `${table} has ${there} of ${copied} rows. Nothing was changed.`);
}

async function countIn(target: pg.Client, name: string): Promise<number> {
  const { rows } = await target.query<{ count: string }>(`select count(*) from ${name}`);
  return Number(rows[0]?.count);
}
