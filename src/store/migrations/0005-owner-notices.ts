import { type ColumnDefinitionBuilder, type Kysely, sql } from 'kysely';

/** Alerts for the owner, and the commands a bot account has registered with its network. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('ownerNotices')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('kind', 'text', required)
    .addColumn('subject', 'text', required)
    .addColumn('details', 'text', required)
    .addColumn('count', 'integer', required)
    .addColumn('raisedAt', 'bigint', required)
    .addColumn('lastAt', 'bigint', required)
    .addColumn('isPending', 'integer', required)
    .addColumn('toldAt', 'bigint')
    .addColumn('partKey', 'text')
    .addColumn('dismissedAt', 'bigint')
    .addColumn('endedAt', 'bigint')
    .execute();
  await db.schema
    .createIndex('ownerNoticesOpen')
    .on('ownerNotices')
    .columns(['kind', 'subject'])
    .unique()
    .where(sql.ref('endedAt'), 'is', null)
    .execute();
  await db.schema
    .createIndex('ownerNoticesPending')
    .on('ownerNotices')
    .column('raisedAt')
    .where(sql.ref('isPending'), '=', sql.lit(1))
    .execute();
  await db.schema.alterTable('accounts').addColumn('commandsHash', 'text').execute();
  await db.schema
    .createIndex('outboxUnknown')
    .on('outbox')
    .column('conversationKey')
    .where(sql.ref('state'), '=', sql.lit('unknown'))
    .execute();
}

function required(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull();
}
