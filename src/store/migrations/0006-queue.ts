import { type ColumnDefinitionBuilder, type Kysely, sql } from 'kysely';

/** The queue's columns of each waiting message, of parked runs, and of the processes that share the store. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await extendInbox(db);
  await extendRuns(db);
  await createItemChanges(db);
  await indexEvents(db);
}

async function extendInbox(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('inbox').addColumn('receiptAt', 'bigint').execute();
  await db.schema.alterTable('inbox').addColumn('answer', 'text').execute();
  await db.schema.alterTable('inbox').addColumn('isKept', 'integer', fromZero).execute();
  // Messages that wait and whose senders were not told: few, for at most some seconds each.
  await db.schema
    .createIndex('inboxUntold')
    .on('inbox')
    .column('createdAt')
    .where(sql.ref('state'), '=', sql.lit('waiting'))
    .where(sql.ref('receiptAt'), 'is', null)
    .execute();
  // Nobody looks for what no run has taken: one page less to write for each message.
  await db.schema.dropIndex('inboxRun').execute();
  await db.schema
    .createIndex('inboxRun')
    .on('inbox')
    .column('runId')
    .where(sql.ref('runId'), 'is not', null)
    .execute();
  // By due time and lane, so that a page of it can be told from the next one.
  await db.schema.dropIndex('inboxDue').execute();
  await db.schema
    .createIndex('inboxDue')
    .on('inbox')
    .columns(['dueAt', 'laneKey'])
    .where(sql.ref('state'), 'in', [sql.lit('held'), sql.lit('waiting')])
    .execute();
  await db.schema
    .createIndex('inboxFetching')
    .on('inbox')
    .column('isFetching')
    .where(sql.ref('state'), 'in', [sql.lit('held'), sql.lit('waiting')])
    .where(sql.ref('isFetching'), '=', sql.lit(1))
    .execute();
}

async function extendRuns(db: Kysely<unknown>): Promise<void> {
  // Nobody asks for the runs of a lane.
  await db.schema.dropIndex('runsLane').ifExists().execute();
  await db.schema.alterTable('runs').addColumn('parkedAt', 'bigint').execute();
  await db.schema.alterTable('runs').addColumn('parkReason', 'text').execute();
  await db.schema.alterTable('runs').addColumn('workedMs', 'bigint', fromZero).execute();
  await db.schema
    .alterTable('boots')
    .addColumn('role', 'text', (column) => column.notNull().defaultTo('all'))
    .execute();
}

async function createItemChanges(db: Kysely<unknown>): Promise<void> {
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

async function indexEvents(db: Kysely<unknown>): Promise<void> {
  // The events of a message: what an edit of an unknown message and `parley why` look for.
  await db.schema
    .createIndex('ledgerMessage')
    .on('ledger')
    .columns(['messageId', 'conversationKey'])
    .execute();
  // Lanes that are kept between two runs: few, and a dead process's are given back at once.
  await db.schema
    .createIndex('lanesKept')
    .on('lanes')
    .column('holder')
    .where(sql.ref('runId'), 'is', null)
    .where(sql.ref('leaseUntil'), '>', sql.lit(0))
    .execute();
}

function required(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull();
}

function fromZero(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull().defaultTo(0);
}
