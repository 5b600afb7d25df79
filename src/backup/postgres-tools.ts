/** PostgreSQL's own programs: they know every type and order that a copy has to keep. */
import { type ChildProcess, spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { ParleyError } from '#contracts/errors.ts';
import { childEnvironment } from '../config/environment.ts';
import { syncFile } from './durable-files.ts';
import type { DatabaseRecord } from './manifest.ts';

/**
 * Writes the schema's tables as of one moment, beside those who use them. Throws ParleyError, with the command to type where
 * pg_dump is missing.
 */
export async function dumpPostgres(url: string, target: string): Promise<DatabaseRecord> {
  return withClient(url, async (client) => {
    await client.query('begin isolation level repeatable read read only');
    const snapshot = await one(client, 'select pg_export_snapshot() as value');
    const schema = await one(client, 'select current_schema() as value');
    const record = await describePostgres(client, 'parley.dump');
    await run('pg_dump', url, [
      ...['--format=custom', '--no-owner', '--no-privileges'],
      // Tables by pattern: with --schema the copy would make the schema itself, which is there.
      ...[`--table="${schema}".*`, `--snapshot=${snapshot}`, `--file=${target}`],
    ]);
    await run('pg_restore', undefined, ['--list', target]);
    await syncFile(target);
    return record;
  });
}

type Replacement = {
  readonly dump: string;
  readonly record: DatabaseRecord;
  /** When the backup was made, ISO 8601. */
  readonly madeAt: string;
  readonly kept: string;
};

/**
 * Puts a dump in the place of the schema's tables, which move to a schema named `kept`, and notes the restore in them: all in
 * one transaction, so that a kill leaves the one state or the other. Throws ParleyError; also while others use the database.
 */
export async function restorePostgres(
  url: string,
  { dump, record, madeAt, kept }: Replacement,
): Promise<void> {
  const schema = await withClient(url, async (client) => {
    const others = await one(
      client,
      `select count(*) as value from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
    );
    if (others !== '0')
      throw new ParleyError(
        'data_folder_locked',
        `${others} other connections use this database. Stop every process of Parley first.`,
      );
    return one(client, 'select current_schema() as value');
  });
  const script = start('pg_restore', undefined, ['--no-owner', '--no-privileges', '--file=-', dump]);
  const psql = start('psql', url, ['--no-psqlrc', '--quiet', '--set=ON_ERROR_STOP=1', '--file=-']);
  const isWhole = ended('pg_restore', script);
  const before = `begin;\n${moveTables(schema, kept)}`;
  const after = `${checkRows(schema, record.rows)}${noteRestore(schema, madeAt)}commit;\n`;
  const steps = [feed(psql, script, { before, isWhole, after }), isWhole, ended('psql', psql)];
  try {
    await Promise.all(steps);
  } finally {
    // Once this rejects, psql has ended too and the tables are as they were.
    await Promise.allSettled(steps);
  }
}

type Script = {
  readonly before: string;
  /** Rejects when pg_restore fails, maybe after its last row. */
  readonly isWhole: Promise<void>;
  readonly after: string;
};

/**
 * The commit comes in `after`, written once the dump was read to its end: for psql the end of its input is no fault, also
 * when a kill of this process brings it, and without a commit the server undoes everything.
 */
async function feed(
  { stdin }: ChildProcess,
  { stdout }: ChildProcess,
  { before, isWhole, after }: Script,
): Promise<void> {
  if (stdin === null || stdout === null) return;
  const parts = async function* () {
    yield before;
    yield* stdout;
    await isWhole;
    yield after;
  };
  // A broken pipe says that psql has ended, and a dump that isn't whole that pg_restore has failed: each says why itself.
  await pipeline(parts, stdin).catch(() => undefined);
}

function moveTables(schema: string, kept: string): string {
  return `set lock_timeout = '10s';
create schema "${kept}";
do $$ declare one text; begin
  for one in select tablename from pg_tables where schemaname = '${schema}' loop
    execute format('alter table "${schema}".%I set schema "${kept}"', one);
  end loop;
end $$;
`;
}

/** In the same transaction: what isn't whole doesn't count. */
function checkRows(schema: string, rows: Readonly<Record<string, number>>): string {
  const checks = Object.entries(rows).map(
    ([table, count]) =>
      `if (select count(*) from "${schema}"."${table}") <> ${count} then raise 'table ${table} lacks rows'; end if;`,
  );
  return `\ndo $$ begin\n${checks.join('\n')}\nend $$;\n`;
}

/** The dump's own settings have emptied the search path. */
function noteRestore(schema: string, madeAt: string): string {
  return `insert into "${schema}".restores ("madeAt") values (${pg.escapeLiteral(madeAt)}) on conflict do nothing;\n`;
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

async function one(client: pg.Client, query: string): Promise<string> {
  const { rows } = await client.query<{ value: unknown }>(query);
  return String(rows[0]?.value ?? '');
}

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ParleyError('store_unavailable', `PostgreSQL isn't reachable (${reason}).`, { cause });
  }
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

async function run(program: string, url: string | undefined, args: readonly string[]): Promise<void> {
  const child = start(program, url, args);
  child.stdout?.resume();
  await ended(program, child);
}

/** Other users see a command's arguments, so the password goes into its environment. */
function start(program: string, url: string | undefined, args: readonly string[]): ChildProcess {
  const address = url === undefined ? undefined : new URL(url);
  const password = address?.password ?? '';
  if (address) address.password = '';
  return spawn(program, [...args, ...(address ? [`--dbname=${address.href}`] : [])], {
    env: {
      ...childEnvironment(),
      ...(password !== '' && { PGPASSWORD: decodeURIComponent(password) }),
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

async function ended(program: string, child: ChildProcess): Promise<void> {
  const said = child.stderr ? text(child.stderr) : Promise.resolve('');
  const code = await new Promise<number | string>((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    child.once('close', (status, signal) => resolve(status ?? signal ?? 'an unknown cause'));
  });
  if (code === 0) return;
  if (code === 'ENOENT')
    throw new ParleyError(
      'config_invalid',
      `${program} isn't installed here. Install it (Debian: apt-get install -y postgresql-client), or type where it is: pg_dump --format=custom --file=parley.dump "$DATABASE_URL"`,
    );
  const reason = (await said).trim().split('\n').slice(-3).join(' ');
  throw new ParleyError('store_unavailable', `${program} failed (${code}): ${reason}`);
}
