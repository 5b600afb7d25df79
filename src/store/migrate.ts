import type { Kysely } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { ParleyError } from '#contracts/errors.ts';
import type { Tables } from './base/tables.ts';
import * as initial from './migrations/0001-initial.ts';
import * as anchors from './migrations/0002-anchors.ts';
import * as access from './migrations/0003-access.ts';
import * as links from './migrations/0004-links.ts';
import * as ownerNotices from './migrations/0005-owner-notices.ts';
import * as queue from './migrations/0006-queue.ts';
import * as children from './migrations/0007-children.ts';

const migrations: Record<string, Migration> = {
  '0001-initial': initial,
  '0002-anchors': anchors,
  '0003-access': access,
  '0004-links': links,
  '0005-owner-notices': ownerNotices,
  '0006-queue': queue,
  '0007-children': children,
};

/** The steps of the schema, in their order. */
export const migrationNames: readonly string[] = Object.keys(migrations);

/** Brings the schema up to date, under the migrator's own lock. Throws `store_unavailable`. */
export async function migrate(db: Kysely<Tables>): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateToLatest();
  if (error === undefined) return;
  const reason = error instanceof Error ? error.message : String(error);
  throw new ParleyError(
    'store_unavailable',
    `The database schema could not be brought up to date: ${reason}`,
    { cause: error },
  );
}
