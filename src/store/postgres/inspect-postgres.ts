import pg from 'pg';
import { differencesOf } from '../migrate.ts';
import { compareSteps, type StoreReport, toolRefusals } from '../store-report.ts';

const timeoutMs = 5_000;

export async function inspectPostgres(url: string): Promise<StoreReport> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  // A broken connection fails the running query; without a listener it would also end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const version = await client.query<{ server_version: string }>('show server_version');
    const detail = `PostgreSQL ${version.rows[0]?.server_version ?? 'of unknown version'}`;
    const taken = await appliedSteps(client);
    const steps = compareSteps(taken);
    const ask = async (query: string) => (await client.query<Record<string, unknown>>(query)).rows;
    const { misfits } = await differencesOf(ask, 'postgres', { taken });
    const withoutTools = misfits.length > 0 ? new Map() : await readRefusals(client, steps.pending);
    return { kind: 'found', detail, ...steps, misfits, withoutTools };
  } catch (error) {
    return { kind: 'unreachable', reason: error instanceof Error ? error.message : String(error) };
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Reads which schema steps a database has applied. Rejects if it can't be reached. */
export async function readPostgresSteps(url: string): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: timeoutMs });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await appliedSteps(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Reads the models that have refused tools; empty for a database with another schema. */
async function readRefusals(
  client: pg.Client,
  pending: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (pending.length > 0) return new Map();
  const { rows } = await client.query<{ subject: string; at: string }>(toolRefusals);
  return new Map(rows.map(({ subject, at }) => [subject, Number(at)]));
}

async function appliedSteps(client: pg.Client): Promise<readonly string[]> {
  const table = await client.query<{ name: string | null }>("select to_regclass('kysely_migration') as name");
  if (table.rows[0]?.name == null) return [];
  const steps = await client.query<{ name: string }>('select name from kysely_migration order by name');
  return steps.rows.map(({ name }) => name);
}
