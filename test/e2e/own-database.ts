import pg from 'pg';

/** The server where tests may create databases; undefined when there is no PostgreSQL. */
export const databaseServer = process.env.PARLEY_TEST_DATABASE_URL;

export type OwnDatabase = {
  readonly url: string;
  read(sql: string): Promise<readonly Record<string, unknown>[]>;
};

/** Creates an empty PostgreSQL database, dropped at the end. */
export async function makeDatabase(atEnd: (end: () => Promise<void>) => void): Promise<OwnDatabase> {
  const name = `parley_${crypto.randomUUID().replaceAll('-', '')}`;
  const server = databaseServer ?? '';
  const url = await createDatabase(server, name);
  atEnd(() => dropDatabase(server, name));
  return { url, read: (sql) => query(url, sql) };
}

/** Resolves with the database's address. */
export async function createDatabase(server: string, name: string): Promise<string> {
  await query(server, `create database ${name} strategy file_copy`);
  return addressOf(server, name);
}

export async function dropDatabase(server: string, name: string): Promise<void> {
  await query(server, `drop database ${name} with (force)`);
}

export function addressOf(server: string, name: string): string {
  return Object.assign(new URL(server), { pathname: `/${name}` }).href;
}

/** Runs the statements one after the other; resolves with the rows of the last. */
export async function query(
  url: string,
  ...statements: readonly string[]
): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    let rows: readonly Record<string, unknown>[] = [];
    for (const statement of statements) ({ rows } = await client.query(statement));
    return rows;
  } finally {
    await client.end();
  }
}
