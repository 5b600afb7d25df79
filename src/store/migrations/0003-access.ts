import type { ColumnDefinitionBuilder, Kysely } from 'kysely';

/** Who was let in by a pairing code, who asks to be, and how often codes were tried. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('people')
    .addColumn('account', 'text', required)
    .addColumn('peerId', 'text', required)
    .addColumn('ref', 'text', required)
    .addColumn('name', 'text', required)
    .addColumn('role', 'text', required)
    .addColumn('approvedAt', 'bigint', required)
    .addColumn('approvedBy', 'text', required)
    .addPrimaryKeyConstraint('peopleKey', ['account', 'peerId'])
    .execute();
  await db.schema.createIndex('peopleRef').on('people').column('ref').execute();
  await db.schema
    .createTable('pairings')
    .addColumn('account', 'text', required)
    .addColumn('peerId', 'text', required)
    .addColumn('id', 'text', required)
    .addColumn('ref', 'text', required)
    .addColumn('name', 'text', required)
    .addColumn('codeHash', 'text')
    .addColumn('route', 'text', required)
    .addColumn('noticeKey', 'text', required)
    .addColumn('offeredTo', 'text')
    .addColumn('offeredIn', 'text')
    .addColumn('createdAt', 'bigint', required)
    .addColumn('expiresAt', 'bigint', required)
    .addPrimaryKeyConstraint('pairingsKey', ['account', 'peerId'])
    .execute();
  await db.schema
    .createTable('pairingTries')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('recent', 'text', required)
    .execute();
}

function required(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull();
}
