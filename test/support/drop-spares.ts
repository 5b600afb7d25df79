import { dropSpares } from '../store/spare-databases.ts';

/** After all tests: what they have left on a PostgreSQL that isn't gone with them. */
export async function teardown(): Promise<void> {
  const server = process.env.PARLEY_TEST_DATABASE_URL;
  if (server !== undefined) await dropSpares(server);
}
