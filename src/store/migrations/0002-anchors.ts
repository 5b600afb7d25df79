import type { Kysely } from 'kysely';

/** Per conversation of an account, the last event that was accepted with no gap before it. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('anchors')
    .addColumn('account', 'text', (column) => column.notNull())
    .addColumn('conversation', 'text', (column) => column.notNull())
    .addColumn('anchor', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('anchorsKey', ['account', 'conversation'])
    .execute();
}
