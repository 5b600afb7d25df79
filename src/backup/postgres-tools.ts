/** Runs PostgreSQL's own programs, which know every type and order that a copy must preserve. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { ParleyError } from '#contracts/errors.ts';
import { childEnvironment } from '../config/environment.ts';
import type { DatabaseRecord } from './manifest.ts';

/** Application name of the programs' connections on the server. */
export const sessionName = 'parley-backup';

/**
 * Writes the schema's tables as of one moment while others use them. Throws ParleyError; if pg_dump is missing, with
 * the command to type.
 */
export async function dumpPostgres(url: string, target: string): Promise<DatabaseRecord> {
  return withClient(url, async (client) => {
    await client.query('begin isolation level repeatable read read only');
    const snapshot = await one(client, 'select pg_export_snapshot() as value');
    const schema = await one(client, 'select current_schema() as value');
    const record = await describePostgres(client, 'parley.dump');
    const dump = start('pg_dump', url, [
      ...['--format=custom', '--no-owner', '--no-privileges'],
      // Selects tables by pattern: with --schema, the copy would create the schema itself, which already exists.
      ...[`--table="${schema}".*`, `--snapshot=${snapshot}`],
    ]);
    // Piped through this process: if it is killed, the program loses its reader and ends too.
    await Promise.all([save(dump, target), ended('pg_dump', dump)]);
    const list = start('pg_restore', undefined, ['--list', target]);
    list.stdout?.resume();
    await ended('pg_restore', list);
    return record;
  });
}

/** Counts the rows of the schema's tables in the client's transaction. */
async function describePostgres(client: pg.Client, file: string): Promise<DatabaseRecord> {
  const tables = await client.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = current_schema() and tablename not like 'kysely\\_%' order by 1`,
  );
  const rows: Record<string, number> = {};
  for (const { name } of tables.rows)
    rows[name] = Number(await one(client, `select count(*) as value from "${name}"`));
  const table = await one(client, "select to_regclass('kysely_migration') as value");
  const steps = table
    ? await client.query<{ name: string }>('select name from kysely_migration order by name')
    : { rows: [] };
  return { kind: 'postgres', file, steps: steps.rows.map(({ name }) => name), rows };
}

/** Returns the column `value` of the first row as text. */
export async function one(client: pg.Client, query: string): Promise<string> {
  const { rows } = await client.query<{ value: unknown }>(query);
  return String(rows[0]?.value ?? '');
}

/** Runs `use` with its own connection. Throws `store_unavailable` if none can be opened. */
export async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ParleyError('store_unavailable', `PostgreSQL isn't reachable (${reason}).`, {
      cause,
      retry: { kind: 'later' },
    });
  }
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

async function save({ stdout }: ChildProcess, target: string): Promise<void> {
  if (stdout) await pipeline(stdout, createWriteStream(target, { mode: 0o600, flags: 'wx', flush: true }));
}

/**
 * Starts one of PostgreSQL's programs. Other users can see a command's arguments, so the password goes into its
 * environment. On the server its connection is named `sessionName`.
 */
export function start(program: string, url: string | undefined, args: readonly string[]): ChildProcess {
  const address = url === undefined ? undefined : new URL(url);
  const password = address?.password ?? '';
  if (address) address.password = '';
  return spawn(program, [...args, ...(address ? [`--dbname=${address.href}`] : [])], {
    env: {
      ...childEnvironment(),
      PGAPPNAME: sessionName,
      ...(password !== '' && { PGPASSWORD: decodeURIComponent(password) }),
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

/** Resolves when the program has succeeded; otherwise rejects with ParleyError, quoting its error output. */
export async function ended(program: string, child: ChildProcess): Promise<void> {
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
  });
  const code = await new Promise<number | string>((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    child.once('close', (status, signal) => resolve(status ?? signal ?? 'an unknown cause'));
  });
  if (code === 0) return;
  if (code === 'ENOENT')
    throw new ParleyError(
      'config_invalid',
      `${program} isn't installed here. Install it (Debian: apt-get install -y postgresql-client), or run this where it is installed: pg_dump --format=custom --file=parley.dump "$DATABASE_URL"`,
    );
  const reason = said.trim().split('\n').slice(-3).join(' ');
  throw new ParleyError('store_unavailable', `${program} failed (${code}): ${reason}`);
}
