import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import pg from 'pg';

/** The measurement's own connection to the database that the processes use. */
export type Database = {
  readonly kind: 'SQLite' | 'PostgreSQL';
  /** Address for the processes; none for SQLite, which is in their data folder. */
  readonly url: string | undefined;
  query(sql: string): Promise<readonly Record<string, unknown>[]>;
  /** Returns the product's tables. */
  tables(): Promise<readonly string[]>;
  /** Returns `count` numbers starting at `first`, as a source of rows with the column `n`. */
  numbers(first: number, count: number): string;
  /** Gives the planner the statistics that a database in service has. */
  settle(): Promise<void>;
  /** Returns its total size on the disk, bytes: tables and indexes. */
  sizeBytes(): Promise<number>;
  /** Returns the size of each table with its indexes. */
  bytesByTable(): Promise<ReadonlyMap<string, number>>;
  /** Returns the size of data not yet in the main file, bytes; PostgreSQL only has it for the entire cluster. */
  walBytes(): Promise<number | undefined>;
  drop(): Promise<void>;
};

/** Opens the SQLite database; call it once the first process has created the tables. */
export function besideSqlite(dataDir: string): Database {
  const file = join(dataDir, 'parley.db');
  const opened: { connection?: BetterSqlite3.Database } = {};
  const open = () => {
    opened.connection ??= new BetterSqlite3(file, { fileMustExist: true, timeout: 20_000 });
    return opened.connection;
  };
  const query = async (sql: string) => {
    const statement = open().prepare(sql);
    if (statement.reader) return statement.all() as Record<string, unknown>[];
    statement.run();
    return [];
  };
  const sizeOf = (path: string) =>
    stat(path).then(
      ({ size }) => size,
      () => 0,
    );
  return {
    kind: 'SQLite',
    url: undefined,
    query,
    tables: async () => {
      const found = await query(
        "select name from sqlite_master where type = 'table' and name not like 'kysely%' and name not like 'sqlite%'",
      );
      return found.map(({ name }) => String(name));
    },
    numbers: (first, count) =>
      `(with recursive series(n) as (select ${first} union all select n + 1 from series where n < ${first + count - 1}) select n from series)`,
    settle: async () => undefined,
    sizeBytes: async () => {
      open().pragma('wal_checkpoint(PASSIVE)');
      return sizeOf(file);
    },
    bytesByTable: async () => {
      const rows = await query(
        'select m.tbl_name as name, sum(s.pgsize) as bytes from dbstat s join sqlite_master m on m.name = s.name group by 1',
      );
      return new Map(rows.map(({ name, bytes }) => [String(name), Number(bytes)]));
    },
    walBytes: () => sizeOf(`${file}-wal`),
    drop: async () => void opened.connection?.close(),
  };
}

/** Creates a database. `admin`: the address of a cluster that allows it. */
export async function createPostgres(admin: string): Promise<Database> {
  const name = `parley_bench_${crypto.randomUUID().slice(0, 8)}`;
  const url = Object.assign(new URL(admin), { pathname: `/${name}` }).href;
  await runOnce(admin, `create database ${name}`);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const query = async (sql: string) => (await client.query(sql)).rows as Record<string, unknown>[];
  return {
    kind: 'PostgreSQL',
    url,
    query,
    tables: async () => {
      const found = await query(
        "select tablename as name from pg_tables where schemaname = 'public' and tablename not like 'kysely%'",
      );
      return found.map(({ name }) => String(name));
    },
    numbers: (first, count) => `(select n from generate_series(${first}, ${first + count - 1}) n)`,
    settle: async () => void (await query('vacuum analyze')),
    sizeBytes: async () =>
      Number((await query('select pg_database_size(current_database()) as size'))[0]?.size),
    bytesByTable: async () => {
      const rows = await query(
        "select relname as name, pg_total_relation_size(oid) as bytes from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
      );
      return new Map(rows.map(({ name, bytes }) => [String(name), Number(bytes)]));
    },
    walBytes: async () => undefined,
    drop: async () => {
      await client.end();
      await runOnce(admin, `drop database ${name} with (force)`);
    },
  };
}

async function runOnce(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
