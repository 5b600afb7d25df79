import type { ColumnDefinitionBuilder, Kysely } from 'kysely';

/** What the queue keeps of each waiting message, of parked runs, and of the processes that share the store. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('inbox').addColumn('receiptAt', 'bigint').execute();
  await db.schema.alterTable('inbox').addColumn('answer', 'text').execute();
  await db.schema.alterTable('runs').addColumn('parkedAt', 'bigint').execute();
  await db.schema.alterTable('runs').addColumn('parkReason', 'text').execute();
  await db.schema.alterTable('runs').addColumn('workedMs', 'bigint', fromZero).execute();
  await db.schema
    .alterTable('boots')
    .addColumn('role', 'text', (column) => column.notNull().defaultTo('all'))
    .execute();
  await db.schema
    .createTable('itemChanges')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('laneKey', 'text', required)
    .addColumn('inboxId', 'text', required)
    .addColumn('kind', 'text', required)
    .addColumn('by', 'text', required)
    .addColumn('at', 'bigint', required)
    .execute();
  await db.schema.createIndex('itemChangesOf').on('itemChanges').column('inboxId').execute();
}

function required(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull();
}

function fromZero(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull().defaultTo(0);
}
