import type { Kysely } from 'kysely';
import { accessTables } from './0001/access.ts';
import { deliveryTables } from './0001/delivery.ts';
import { intakeTables } from './0001/intake.ts';
import { laneTables } from './0001/lanes.ts';
import { createTables } from './0001/notation.ts';

/** Creates every table of the first version. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await createTables(db, { ...intakeTables, ...laneTables, ...deliveryTables, ...accessTables });
}
