import { type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { ParleyError } from '#contracts/errors.ts';
import type { Tables } from './base/tables.ts';
import * as schema from './migrations/0001-schema.ts';

/**
 * The schema's migrations by name, in order. A step named `NNNN-add-…` only adds (tables, indexes, columns that may
 * stay empty or have a default), so that the previous version can use the result.
 */
export const migrations: Readonly<Record<string, Migration>> = { '0001-schema': schema };

/** Names of the migrations, in order. */
export const migrationNames: readonly string[] = Object.keys(migrations);

/** Says whether a later version's step leaves the schema usable for this version. */
export function onlyAdds(step: string): boolean {
  return /^\d{4}-add-/.test(step) && step > (migrationNames.at(-1) ?? '');
}

/**
 * Brings the schema up to date, under the migrator's own lock. Throws `store_unavailable`, also when a version unknown
 * to this one has changed the database, unless that version has only added to it.
 */
export async function migrate(db: Kysely<Tables>, steps = migrations): Promise<void> {
  const names = Object.keys(steps);
  const taken = await readTakenSteps(db);
  const unknown = taken.filter((name) => !names.includes(name) && !onlyAdds(name));
  // The migrator itself refuses a database with any step that it doesn't know.
  if (unknown.length === 0 && names.every((name) => taken.includes(name))) return;
  const migrator = new Migrator({ db, provider: { getMigrations: async () => ({ ...steps }) } });
  const { error } = await migrator.migrateToLatest();
  if (error === undefined) return;
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

/** Reads the steps that this database has taken; none when it has no record of them. */
async function readTakenSteps(db: Kysely<Tables>): Promise<readonly string[]> {
  // Checked first, since a failed query would end PostgreSQL's transaction.
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some(({ name }) => name === 'kysely_migration')) return [];
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
  return rows.map(({ name }) => name);
}
