import type { ColumnDefinitionBuilder, Kysely } from 'kysely';

/** Accounts that people have linked in chat, and the codes they do it with. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('links')
    .addColumn('peer', 'text', primary)
    .addColumn('identity', 'text', required)
    .addColumn('route', 'text', required)
    .addColumn('linkedAt', 'bigint', required)
    .execute();
  await db.schema.createIndex('linksIdentity').on('links').column('identity').execute();
  await db.schema
    .createTable('laneAliases')
    .addColumn('key', 'text', primary)
    .addColumn('laneKey', 'text', required)
    .addColumn('identity', 'text', required)
    .addColumn('peer', 'text', required)
    .execute();
  await db.schema.createIndex('laneAliasesIdentity').on('laneAliases').column('identity').execute();
  await db.schema.createIndex('laneAliasesPeer').on('laneAliases').column('peer').execute();
  await db.schema
    .createTable('linkCodes')
    .addColumn('peer', 'text', primary)
    .addColumn('codeHash', 'text', required)
    .addColumn('asked', 'text', required)
    .addColumn('answerKey', 'text', required)
    .addColumn('offeredTo', 'text')
    .addColumn('offeredIn', 'text')
    .addColumn('expiresAt', 'bigint', required)
    .execute();
  await db.schema.createIndex('linkCodesHash').on('linkCodes').column('codeHash').unique().execute();
  await db.schema
    .createTable('linkGuesses')
    .addColumn('peer', 'text', primary)
    .addColumn('since', 'bigint', required)
    .addColumn('count', 'integer', required)
    .execute();
}

function primary(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.primaryKey();
}

function required(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull();
}
