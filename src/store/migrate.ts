import { type Kysely, SqliteAdapter, sql } from 'kysely';
import { Migrator } from 'kysely/migration';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Alteration, SchemaSteps } from './base/schema-step.ts';
import type { Tables } from './base/tables.ts';
import { accessTables } from './migrations/0001/access.ts';
import { deliveryTables } from './migrations/0001/delivery.ts';
import { intakeTables } from './migrations/0001/intake.ts';
import { laneTables } from './migrations/0001/lanes.ts';
import { addApprovals } from './migrations/0002-add-approvals.ts';
import { addTokens } from './migrations/0003-add-tokens.ts';
import { addSkills } from './migrations/0004-add-skills.ts';
import { addPluginData } from './migrations/0005-add-plugin-data.ts';
import { addApiCalls } from './migrations/0006-add-api-calls.ts';
import { addRunEnds } from './migrations/0007-add-run-ends.ts';
import { addOperationCalls } from './migrations/0008-add-operation-calls.ts';
import { addTasks } from './migrations/0009-add-tasks.ts';
import { addDisplay } from './migrations/0010-add-display.ts';
import { addBindings } from './migrations/0011-add-bindings.ts';
import { addMarks } from './migrations/0012-add-marks.ts';
import {
  type AskCatalog,
  compareCatalog,
  type Differences,
  fingerprintOf,
  readCatalog,
} from './migrations/catalog.ts';
import { applyStep, declareSteps, remakeIndex } from './migrations/notation.ts';

/** Every table of the first version. */
const firstTables = { ...intakeTables, ...laneTables, ...deliveryTables, ...accessTables };

/**
 * The schema's steps by name, in order (docs/new-schema-step.md). A step named `NNNN-add-…` only adds (tables, indexes,
 * columns that may stay empty or have a default), so that the previous version can use the result. A released step
 * never changes.
 */
export const migrations: SchemaSteps = declareSteps({
  // Released with 0.2.0.
  '0001-schema': { adds: { tables: firstTables }, fingerprint: 'fb48c22094bd7c3b' },
  '0002-add-approvals': { adds: addApprovals, fingerprint: '397dc857a4692a02' },
  '0003-add-tokens': { adds: addTokens, fingerprint: 'b022c7f5630c6043' },
  '0004-add-skills': { adds: addSkills, fingerprint: '82100a40343ab545' },
  '0005-add-plugin-data': { adds: addPluginData, fingerprint: '4b7fe7a589d72a8b' },
  '0006-add-api-calls': { adds: addApiCalls, fingerprint: 'f38d603eb20f68ca' },
  '0007-add-run-ends': { adds: addRunEnds, fingerprint: '7e5842025e9fb236' },
  '0008-add-operation-calls': { adds: addOperationCalls, fingerprint: '940fa41c6278a08a' },
  '0009-add-tasks': { adds: addTasks, fingerprint: 'd19b70975e9042b9' },
  '0010-add-display': { adds: addDisplay, fingerprint: 'e499666d06696d6e' },
  '0011-add-bindings': { adds: addBindings, fingerprint: '014be18a80fe065d' },
  '0012-add-marks': { adds: addMarks, fingerprint: 'f871c4a4a92c8d93' },
});

/** Names of the migrations, in order. */
export const migrationNames: readonly string[] = Object.keys(migrations);

/** Says whether a later version's step leaves the schema usable for this version. */
export function onlyAdds(step: string): boolean {
  return /^\d{4}-add-/.test(step) && step > (migrationNames.at(-1) ?? '');
}

/**
 * Brings the schema up to date, under the migrator's own lock, if it is what the steps that the database has taken
 * make. Throws `store_unavailable` if it isn't, also when a version unknown to this one has changed the database, unless
 * that version has only added to it.
 */
export async function migrate(db: Kysely<Tables>, steps = migrations): Promise<void> {
  const names = Object.keys(steps);
  const taken = await readTakenSteps(db);
  const unknown = taken.filter((name) => !names.includes(name) && !onlyAdds(name));
  if (unknown.length > 0) throw madeByAnother(unknown);
  const { misfits, indexes } = await findDifferences(db, { steps, taken });
  if (misfits.length > 0) throw misfit(misfits);
  for (const index of indexes) await remakeIndex(alterationOn(db), index);
  // The migrator itself refuses a database with any step that it doesn't know.
  if (names.every((name) => taken.includes(name))) return;
  const provider = {
    getMigrations: async () =>
      Object.fromEntries(
        Object.entries(steps).map(([name, step]) => [
          name,
          { up: (on: Kysely<unknown>) => applyStep(alterationOn(on), step) },
        ]),
      ),
  };
  const { error } = await new Migrator({ db, provider }).migrateToLatest();
  if (error === undefined) return;
  const reason = error instanceof Error ? error.message : String(error);
  throw new ParleyError(
    'store_unavailable',
    `The database schema could not be brought up to date: ${reason}`,
    { cause: error },
  );
}

/** Compares a database's own catalogue with what the steps that it has taken make. Nothing fits less before the first. */
export async function differencesOf(
  ask: AskCatalog,
  dialect: 'sqlite' | 'postgres',
  { steps = migrations, taken }: { readonly steps?: SchemaSteps; readonly taken: readonly string[] },
): Promise<Differences> {
  const known = Object.entries(steps).flatMap(([name, step]) => (taken.includes(name) ? [step] : []));
  const last = known.at(-1);
  if (!last) return { misfits: [], indexes: [] };
  const adds = known.map((step) => step.adds);
  const found = await readCatalog(ask, dialect, adds);
  if (fingerprintOf(found) === last.fingerprint) return { misfits: [], indexes: [] };
  return compareCatalog(found, { steps: adds, mayHaveMore: taken.some((name) => !(name in steps)) });
}

/** The owner's text about a schema that no released version has made. */
export function describeMisfits(misfits: readonly string[]): string {
  const shown = misfits.slice(0, 4);
  const rest = misfits.length - shown.length;
  return `${shown.join('; ')}${rest === 0 ? '' : `; and ${rest} more`}`;
}

/** The advice that goes with it. */
export const misfitAdvice = `Nothing was changed. Either a version from before the release made it, or something other than Parley has altered it. Start the version that you ran before to read what you need (${parleyCommand} sessions --help), or begin with a new data folder (PARLEY_DATA_DIR) or database (DATABASE_URL): see docs/backup.md.`;

function alterationOn(db: Pick<Kysely<unknown>, 'getExecutor'>): Alteration {
  return {
    dialect: dialectOf(db),
    run: async (statement) => void (await sql.raw(statement).execute(db)),
  };
}

function dialectOf(db: Pick<Kysely<unknown>, 'getExecutor'>): 'sqlite' | 'postgres' {
  return db.getExecutor().adapter instanceof SqliteAdapter ? 'sqlite' : 'postgres';
}

function misfit(misfits: readonly string[]): ParleyError {
  return new ParleyError(
    'store_unavailable',
    `The database's schema isn't the one this version of Parley works with: ${describeMisfits(misfits)}. ${misfitAdvice}`,
  );
}

function madeByAnother(steps: readonly string[]): ParleyError {
  return new ParleyError(
    'store_unavailable',
    `Another version of Parley made this database (${steps.join(', ')}). Start that version, or use another data folder or database.`,
  );
}

async function findDifferences(
  db: Kysely<Tables>,
  applied: { readonly steps: SchemaSteps; readonly taken: readonly string[] },
): Promise<Differences> {
  const ask = async (query: string) => (await sql.raw<Record<string, unknown>>(query).execute(db)).rows;
  return differencesOf(ask, dialectOf(db), applied);
}

/** Reads the steps that this database has taken; none when it has no record of them. */
async function readTakenSteps(db: Kysely<Tables>): Promise<readonly string[]> {
  // Checked first, since a failed query would end PostgreSQL's transaction.
  const record =
    dialectOf(db) === 'sqlite'
      ? sql`select 1 from sqlite_master where name = 'kysely_migration'`
      : sql`select 1 where to_regclass('kysely_migration') is not null`;
  if ((await record.execute(db)).rows.length === 0) return [];
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
  return rows.map(({ name }) => name);
}
