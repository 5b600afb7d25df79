/** A PostgreSQL cluster in which databases can be created. */
export type Cluster = { readonly url: string; stop(): Promise<void> };

type Starter = {
  startPostgres(over: Readonly<Record<string, string>>): Promise<{ url: string; stop(): Promise<void> }>;
};

/**
 * Returns the cluster of BENCH_DATABASE_URL, or starts one that flushes every commit; undefined when the variable is
 * `off`, or there is no server program.
 */
export async function findPostgres(): Promise<Cluster | undefined> {
  const { BENCH_DATABASE_URL: url } = process.env;
  if (url === 'off') return undefined;
  if (url) return { url, stop: async () => undefined };
  // The tests' cluster, without the shortcuts that make it fast.
  const path = new URL('../../scripts/test-postgres.mjs', import.meta.url).href;
  const { startPostgres } = (await import(path)) as Starter;
  try {
    return await startPostgres({ fsync: 'on', full_page_writes: 'on', shared_buffers: '256MB' });
  } catch (error) {
    console.error(`without PostgreSQL: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}
