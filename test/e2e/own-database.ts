import pg from 'pg';

/** Where the tests may make databases of their own; undefined when there is no PostgreSQL. */
export const databaseServer = process.env.PARLEY_TEST_DATABASE_URL;

export type OwnDatabase = {
  readonly url: string;
  read(sql: string): Promise<readonly Record<string, unknown>[]>;
};

/** An empty PostgreSQL database, dropped at the end. */
export async function makeDatabase(atEnd: (end: () => Promise<void>) => void): Promise<OwnDatabase> {
  const name = `parley_${crypto.randomUUID().replaceAll('-', '')}`;
  const server = databaseServer ?? '';
  await query(server, `create database ${name} strategy file_copy`);
  atEnd(async () => {
    await query(server, `drop database ${name} with (force)`);
  });
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { url: url.href, read: (sql) => query(url.href, sql) };
}

async function query(url: string, sql: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(sql);
    return rows as readonly Record<string, unknown>[];
  } finally {
    await client.end();
  }
}
