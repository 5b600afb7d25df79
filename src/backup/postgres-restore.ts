import type { ChildProcess } from 'node:child_process';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { ParleyError } from '#contracts/errors.ts';
import type { DatabaseRecord, RestoreNote } from './manifest.ts';
import { ended, one, sessionName, start, withClient } from './postgres-tools.ts';

type Replacement = {
  readonly dump: string;
  readonly record: DatabaseRecord;
  readonly note: RestoreNote;
  /** Schema that takes the tables that are there. */
  readonly kept: string;
  /** Called once everything is in the database but the commit. */
  decide(): Promise<void>;
};

/** Held by a restore from before its first change to its commit. */
const restoring = `hashtextextended('parley-restore', 0)`;

/**
 * Puts a dump in the place of the schema's tables, which move to a schema named `kept`, and notes the restore in them: all in
 * one transaction, so that a kill leaves the one state or the other. Throws ParleyError; also while others use the database.
 */
export async function restorePostgres(
  url: string,
  { dump, record, note, kept, decide }: Replacement,
): Promise<void> {
  const { schema, pid } = await withClient(url, async (client) => {
    await refuseBesideOthers(client);
    const schema = await one(client, 'select current_schema() as value');
    return { schema, pid: await one(client, 'select pg_backend_pid() as value') };
  });
  const script = start('pg_restore', undefined, ['--no-owner', '--no-privileges', '--file=-', dump]);
  const psql = start('psql', url, ['--no-psqlrc', '--quiet', '--set=ON_ERROR_STOP=1', '--file=-']);
  psql.stdout?.resume();
  const isWhole = ended('pg_restore', script);
  const isReady = untilReady(psql);
  const before = `begin;\nset lock_timeout = '10s';\nselect pg_advisory_xact_lock(${restoring});\n${moveTables(schema, kept)}`;
  const after = `${checkRows(schema, record.rows)}${noteRestore(schema, note)}${refuseNewcomers(pid)}${sayReady}`;
  const steps = [
    feed(psql, script, { before, isWhole, after, isReady, decide }),
    isWhole,
    ended('psql', psql),
    isReady.catch(() => undefined),
  ];
  try {
    await Promise.all(steps);
  } finally {
    // Once this rejects, psql has ended too and the tables are as they were.
    await Promise.allSettled(steps);
  }
}

/**
 * Whether the database was restored so. Waits for a restore that is about to commit: its process may have been killed, and
 * psql have got the word. Throws `store_unavailable`.
 */
export function hasRestore(url: string, id: string): Promise<boolean> {
  return withClient(url, async (client) => {
    try {
      await client.query(`set lock_timeout = '60s'`);
      await client.query(`select pg_advisory_lock_shared(${restoring})`);
      if ((await one(client, `select to_regclass('restores') as value`)) === '') return false;
      const { rows } = await client.query('select 1 from restores where id = $1', [id]);
      return rows.length > 0;
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      const message = `PostgreSQL can't say whether it was restored (${reason}).`;
      throw new ParleyError('store_unavailable', message, { cause, retry: { kind: 'later' } });
    }
  });
}

const passingMs = 10_000;
const lookMs = 100;

/** Refuses unless nobody else is connected; what an interrupted backup or restore has left ends by itself. */
async function refuseBesideOthers(client: pg.Client): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += lookMs) {
    const { rows } = await client.query<{ name: string }>(
      `select application_name as name from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
    );
    if (rows.length === 0) return;
    if (waitedMs >= passingMs || rows.some(({ name }) => name !== sessionName))
      throw new ParleyError(
        'data_folder_locked',
        `${rows.length === 1 ? 'Another connection uses' : `${rows.length} other connections use`} this database. Stop every process of Parley first.`,
      );
    await pause(lookMs);
  }
}

type Script = {
  readonly before: string;
  /** Rejects when pg_restore fails, maybe after its last row. */
  readonly isWhole: Promise<void>;
  readonly after: string;
  /** Resolves when the server has done all of this. */
  readonly isReady: Promise<void>;
  decide(): Promise<void>;
};

/**
 * The commit is sent once the rest was done: for psql the end of its input is no fault, also when a kill of this process brings
 * it, and without a commit the server undoes everything. So a psql that outlives this process either has the last word
 * already, and all locks with it, or changes nothing.
 */
async function feed(
  { stdin }: ChildProcess,
  { stdout }: ChildProcess,
  { before, isWhole, after, isReady, decide }: Script,
): Promise<void> {
  if (stdin === null || stdout === null) return;
  let refusal: unknown;
  const parts = async function* () {
    yield before;
    yield* stdout;
    await isWhole;
    yield after;
    await isReady;
    await decide().catch((error: unknown) => {
      refusal = error;
      throw error;
    });
    yield 'commit;\n';
  };
  // A broken pipe says that psql has ended, and a dump that isn't whole that pg_restore has failed: each says why itself.
  await pipeline(parts, stdin).catch(() => undefined);
  if (refusal !== undefined) throw refusal;
}

const ready = 'parley: all but the commit';
/** A warning, since dumps silence whatever is less; psql passes it on at once. */
const sayReady = `do $$ begin raise warning '${ready}'; end $$;\n`;

function untilReady(psql: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = '';
    psql.stderr?.on('data', (chunk: unknown) => {
      said = `${said}${String(chunk)}`.slice(-1_000);
      if (said.includes(ready)) resolve();
    });
    psql.once('close', () => reject(new ParleyError('store_unavailable', 'psql has ended.')));
  });
}

function moveTables(schema: string, kept: string): string {
  return `create schema "${kept}";
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

/** A process that has come since has read the tables of before. */
function refuseNewcomers(pid: string): string {
  return `do $$ begin
  if exists (select 1 from pg_stat_activity where datname = current_database() and backend_type = 'client backend'
    and pid not in (pg_backend_pid(), ${pid}))
  then raise 'another connection uses this database. Stop every process of Parley first.'; end if;
end $$;
`;
}

/** The dump's own settings have emptied the search path. */
function noteRestore(schema: string, { id, madeAt }: RestoreNote): string {
  const values = [id, madeAt].map((value) => pg.escapeLiteral(value)).join(', ');
  return `insert into "${schema}".restores (id, "madeAt", "isActed") values (${values}, 0);\n`;
}
