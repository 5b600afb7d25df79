import { dropSpares } from '../store/spare-databases.ts';

/** Runs after all tests: drops the databases they left on a PostgreSQL server that outlives them. */
export async function teardown(): Promise<void> {
  const server = process.env.PARLEY_TEST_DATABASE_URL;
  if (server !== undefined) await dropSpares(server);
}
