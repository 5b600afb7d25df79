import { type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { ParleyError } from '#contracts/errors.ts';
import type { Tables } from './base/tables.ts';
import * as schema from './migrations/0001-schema.ts';

const migrations: Record<string, Migration> = { '0001-schema': schema };

/** The steps of the schema, in their order. */
export const migrationNames: readonly string[] = Object.keys(migrations);

/**
 * Brings the schema up to date, under the migrator's own lock. Throws `store_unavailable`, also for a database of
 * a version that this one doesn't know.
 */
export async function migrate(db: Kysely<Tables>): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateToLatest();
  if (error === undefined) return;
  const unknown = await readUnknownSteps(db);
  if (unknown.length > 0)
    throw new ParleyError(
      'store_unavailable',
      `Another version of Parley made this database (${unknown.join(', ')}). Start that version, or use another data folder or database.`,
      { cause: error },
    );
  const reason = error instanceof Error ? error.message : String(error);
  throw new ParleyError(
    'store_unavailable',
    `The database schema could not be brought up to date: ${reason}`,
    { cause: error },
  );
}

/** Steps that were taken here and that this version doesn't have; none when the database doesn't say. */
async function readUnknownSteps(db: Kysely<Tables>): Promise<readonly string[]> {
  const taken = sql<{ name: string }>`select name from kysely_migration order by name`;
  const { rows } = await taken.execute(db).catch(() => ({ rows: [] }));
  return rows.map(({ name }) => name).filter((name) => !migrationNames.includes(name));
}
