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
  /** Schema that receives the existing tables. */
  readonly kept: string;
  /** Called once everything except the commit has been sent. */
  decide(): Promise<void>;
};

/** Advisory lock that a restore holds from before its first change until its commit. */
const restoring = `hashtextextended('parley-restore', 0)`;

/**
 * Replaces the schema's tables with a dump, moves the old ones to a schema named `kept`, and records the restore in the
 * new ones. All of this is one transaction, so a kill leaves either the old or the new state. Throws ParleyError,
 * including while others are using the database.
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
    // By the time this rejects, psql has ended too and the tables are as they were.
    await Promise.allSettled(steps);
  }
}

/**
 * Says whether the database has this restore. Waits for a restore that is about to commit: its process may have been
 * killed after psql had received the commit. Throws `store_unavailable`.
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

/** Throws if anyone else is connected; connections left by an interrupted backup or restore end on their own. */
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
        `${rows.length === 1 ? 'Another connection uses' : `${rows.length} other connections use`} this database. Stop every Parley process first.`,
      );
    await pause(lookMs);
  }
}

type Script = {
  readonly before: string;
  /** Rejects if pg_restore fails, which may be after its last row. */
  readonly isWhole: Promise<void>;
  readonly after: string;
  /** Resolves when the server has executed everything up to here. */
  readonly isReady: Promise<void>;
  decide(): Promise<void>;
};

/**
 * Sends the commit only after everything else is done. For psql the end of its input isn't an error, even if it comes
 * from this process being killed, and without a commit the server rolls everything back. So a psql that outlives this
 * process either has the commit already, and with it all locks, or changes nothing.
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
  // A broken pipe means that psql has ended, an incomplete dump that pg_restore has failed; both report the reason.
  await pipeline(parts, stdin).catch(() => undefined);
  if (refusal !== undefined) throw refusal;
}

const ready = 'parley: all but the commit';
/** A warning, because dumps silence lower levels; psql passes it on immediately. */
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

/** Checks the row counts in the same transaction, so that an incomplete copy is never committed. */
function checkRows(schema: string, rows: Readonly<Record<string, number>>): string {
  const checks = Object.entries(rows).map(
    ([table, count]) =>
      `if (select count(*) from "${schema}"."${table}") <> ${count} then raise 'table ${table} is missing rows'; end if;`,
  );
  return `\ndo $$ begin\n${checks.join('\n')}\nend $$;\n`;
}

/** Rejects processes that have connected since: they have read the old tables. */
function refuseNewcomers(pid: string): string {
  return `do $$ begin
  if exists (select 1 from pg_stat_activity where datname = current_database() and backend_type = 'client backend'
    and pid not in (pg_backend_pid(), ${pid}))
  then raise 'another connection uses this database. Stop every Parley process first.'; end if;
end $$;
`;
}

/** Records the restore. Names the schema, because the dump's settings have emptied the search path. */
function noteRestore(schema: string, { id, madeAt }: RestoreNote): string {
  const values = [id, madeAt].map((value) => pg.escapeLiteral(value)).join(', ');
  return `insert into "${schema}".restores (id, "madeAt", "isActed") values (${values}, 0);\n`;
}
