import {
  type ColumnDefinitionBuilder,
  type CreateTableBuilder,
  type Kysely,
  SqliteAdapter,
  sql,
} from 'kysely';

/** Creates every table of the first version. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await createBoots(db);
  await createAccounts(db);
  await createConversations(db);
  await createLedger(db);
  await createLanes(db);
  await createInbox(db);
  await createGroupContext(db);
  await createSessions(db);
  await createTranscript(db);
  await createRuns(db);
  await createToolCalls(db);
  await createModelCalls(db);
  await createOutbox(db);
  await createReceipts(db);
  await createSignIns(db);
}

async function createBoots(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('boots')
    .addColumn('id', 'text', primary)
    .addColumn('folder', 'text', required)
    .addColumn('startedAt', 'bigint', required)
    .execute();
}

async function createAccounts(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('accounts')
    .addColumn('key', 'text', primary)
    .addColumn('epoch', 'bigint', fromZero)
    .addColumn('holder', 'text')
    .addColumn('leaseUntil', 'bigint', fromZero)
    .addColumn('cursor', 'text')
    .execute();
}

async function createConversations(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('conversations')
    .addColumn('key', 'text', primary)
    .addColumn('canonicalId', 'text')
    .addColumn('movedTo', 'text')
    .addColumn('activation', 'text')
    .addColumn('unreachableAt', 'bigint')
    .addColumn('nextPart', 'bigint', fromOne)
    .addColumn('deliveryEpoch', 'bigint', fromZero)
    .addColumn('deliveryHolder', 'text')
    .addColumn('deliveryUntil', 'bigint', fromZero)
    .execute();
}

async function createLedger(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('ledger')
    .addColumn('account', 'text', required)
    .addColumn('eventKey', 'text', required)
    .addColumn('kind', 'text', required)
    .addColumn('outcome', 'text', required)
    .addColumn('reason', 'text')
    .addColumn('inboxId', 'text')
    .addColumn('laneKey', 'text')
    .addColumn('conversationKey', 'text', required)
    .addColumn('messageId', 'text')
    .addColumn('raw', 'text')
    .addColumn('fingerprint', 'text')
    .addColumn('at', 'bigint', required)
    .addPrimaryKeyConstraint('ledgerKey', ['account', 'eventKey'])
    .execute();
}

async function createLanes(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('lanes')
    .addColumn('key', 'text', primary)
    .addColumn('class', 'text', required)
    .addColumn('agentId', 'text', required)
    .addColumn('chatKind', 'text', required)
    .addColumn('sessionId', 'text', required)
    .addColumn('epoch', 'bigint', fromZero)
    .addColumn('holder', 'text')
    .addColumn('leaseUntil', 'bigint', fromZero)
    .addColumn('runId', 'text')
    .addColumn('nextSeq', 'bigint', fromOne)
    .addColumn('mode', 'text', required)
    .addColumn('debounceMs', 'integer', required)
    .addColumn('quietMs', 'integer', required)
    .addColumn('cap', 'integer', required)
    .addColumn('drop', 'text', required)
    .addColumn('overrides', 'text')
    .addColumn('overflow', 'text')
    .addColumn('lastActivityAt', 'bigint', required)
    .execute();
  await db.schema
    .createIndex('lanesUnfinished')
    .on('lanes')
    .column('leaseUntil')
    .where(sql.ref('runId'), 'is not', null)
    .execute();
}

async function createInbox(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('inbox')
    .addColumn('id', 'text', primary)
    .addColumn('laneKey', 'text', required)
    .addColumn('seq', 'bigint', required)
    .addColumn('rank', 'integer', fromZero)
    .addColumn('kind', 'text', required)
    .addColumn('state', 'text', required)
    .addColumn('outcome', 'text')
    .addColumn('outcomeReason', 'text')
    .addColumn('bundle', 'text')
    .addColumn('account', 'text', required)
    .addColumn('conversationKey', 'text', required)
    .addColumn('messageId', 'text')
    .addColumn('senderId', 'text', required)
    .addColumn('authority', 'text', required)
    .addColumn('route', 'text')
    .addColumn('source', 'text', (column) => column.notNull().defaultTo('platform'))
    .addColumn('sourceKey', 'text')
    .addColumn('reach', 'text', (column) => column.notNull().defaultTo('mode'))
    .addColumn('reservedRunId', 'text')
    .addColumn('content', 'text', required)
    .addColumn('isFetching', 'integer', fromZero)
    .addColumn('dueAt', 'bigint', required)
    .addColumn('runId', 'text')
    .addColumn('transcriptId', 'text')
    .addColumn('createdAt', 'bigint', required)
    .execute();
  await db.schema.createIndex('inboxOrder').on('inbox').columns(['laneKey', 'seq']).unique().execute();
  for (const column of ['sourceKey', 'reservedRunId']) {
    const index = db.schema.createIndex(`inbox_${column}`).on('inbox').column(column).unique();
    await index.where(sql.ref(column), 'is not', null).execute();
  }
  await db.schema.createIndex('inboxMessage').on('inbox').columns(['conversationKey', 'messageId']).execute();
  await db.schema.createIndex('inboxRun').on('inbox').column('runId').execute();
  await db.schema
    .createIndex('inboxOpen')
    .on('inbox')
    .columns(['laneKey', 'rank', 'seq'])
    .where(sql.ref('state'), 'in', [sql.lit('held'), sql.lit('waiting')])
    .execute();
  await db.schema
    .createIndex('inboxDue')
    .on('inbox')
    .column('dueAt')
    .where(sql.ref('state'), 'in', [sql.lit('held'), sql.lit('waiting')])
    .execute();
}

async function createGroupContext(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('groupContext')
    .addColumn('laneKey', 'text', required)
    .addColumn('seq', 'bigint', required)
    .addColumn('account', 'text', required)
    .addColumn('messageId', 'text')
    .addColumn('content', 'text', required)
    .addColumn('shownInRun', 'text')
    .addColumn('at', 'bigint', required)
    .addPrimaryKeyConstraint('groupContextKey', ['laneKey', 'seq'])
    .execute();
}

async function createSessions(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('sessions')
    .addColumn('id', 'text', primary)
    .addColumn('key', 'text', required)
    .addColumn('parentSessionId', 'text')
    .addColumn('agentId', 'text', required)
    .addColumn('title', 'text')
    .addColumn('messageCount', 'integer', fromZero)
    .addColumn('promptTokens', 'bigint', fromZero)
    .addColumn('completionTokens', 'bigint', fromZero)
    .addColumn('summaryMessageId', 'text')
    .addColumn('cost', 'bigint', fromZero)
    .addColumn('settings', 'text')
    .addColumn('role', 'text')
    .addColumn('ancestors', 'text')
    .addColumn('forkedFrom', 'text')
    .addColumn('createdAt', 'bigint', required)
    .addColumn('updatedAt', 'bigint', required)
    .addColumn('endedAt', 'bigint')
    .execute();
  await db.schema.createIndex('sessionsKey').on('sessions').columns(['key', 'createdAt']).execute();
}

async function createTranscript(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('transcript')
    .addColumn('id', 'text', primary)
    .addColumn('sessionId', 'text', required)
    .addColumn('position', 'integer', required)
    .addColumn('role', 'text', required)
    .addColumn('parts', 'text', required)
    .addColumn('model', 'text')
    .addColumn('unsendable', 'text')
    .addColumn('runId', 'text')
    .addColumn('isFinished', 'integer', fromOne)
    .addColumn('createdAt', 'bigint', required)
    .addColumn('updatedAt', 'bigint', required)
    .execute();
  await db.schema
    .createIndex('transcriptOrder')
    .on('transcript')
    .columns(['sessionId', 'position'])
    .unique()
    .execute();
}

async function createRuns(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('runs')
    .addColumn('id', 'text', primary)
    .addColumn('laneKey', 'text', required)
    .addColumn('sessionId', 'text', required)
    .addColumn('state', 'text', required)
    .addColumn('epoch', 'bigint', required)
    .addColumn('tries', 'integer', fromOne)
    .addColumn('isHandedOver', 'integer', fromZero)
    .addColumn('route', 'text')
    .addColumn('authority', 'text', required)
    .addColumn('cancelReason', 'text')
    .addColumn('nextOrdinal', 'integer', fromOne)
    .addColumn('endReason', 'text')
    .addColumn('detail', 'text')
    .addColumn('treeId', 'text', required)
    .addColumn('startedAt', 'bigint', required)
    .addColumn('endedAt', 'bigint')
    .execute();
}

async function createToolCalls(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('toolCalls')
    .addColumn('runId', 'text', required)
    .addColumn('messageId', 'text', required)
    .addColumn('callId', 'text', required)
    .addColumn('ordinal', 'integer', required)
    .addColumn('name', 'text', required)
    .addColumn('input', 'text', required)
    .addColumn('state', 'text', required)
    .addColumn('result', 'text')
    .addColumn('isError', 'integer', fromZero)
    .addColumn('startedAt', 'bigint')
    .addColumn('endedAt', 'bigint')
    .addPrimaryKeyConstraint('toolCallsKey', ['messageId', 'callId'])
    .execute();
  await db.schema.createIndex('toolCallsRun').on('toolCalls').column('runId').execute();
}

async function createModelCalls(db: Kysely<unknown>): Promise<void> {
  // Asked for by run only.
  const table = db.schema
    .createTable('modelCalls')
    .addColumn('id', 'text', required)
    .addColumn('runId', 'text', required)
    .addColumn('sessionId', 'text', required)
    .addColumn('model', 'text', required)
    .addColumn('inputTokens', 'integer', required)
    .addColumn('outputTokens', 'integer', required)
    .addColumn('cacheReadTokens', 'integer', required)
    .addColumn('cacheWriteTokens', 'integer', required)
    .addColumn('cost', 'bigint', required)
    .addColumn('latencyMs', 'integer', required)
    .addColumn('at', 'bigint', required)
    .addPrimaryKeyConstraint('modelCallsKey', ['runId', 'id']);
  await underKey(db, table).execute();
}

async function createOutbox(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('outbox')
    .addColumn('key', 'text', primary)
    .addColumn('conversationKey', 'text', required)
    .addColumn('place', 'bigint', required)
    .addColumn('laneKey', 'text')
    .addColumn('seq', 'bigint')
    .addColumn('runId', 'text')
    .addColumn('answer', 'text')
    .addColumn('purpose', 'text', required)
    .addColumn('route', 'text', required)
    .addColumn('content', 'text', required)
    .addColumn('state', 'text', required)
    .addColumn('tries', 'integer', fromZero)
    .addColumn('dueAt', 'bigint', required)
    .addColumn('sendingAt', 'bigint')
    .addColumn('waitAskedSince', 'bigint')
    .addColumn('waitAskedUntil', 'bigint')
    .addColumn('receipts', 'text')
    .addColumn('problem', 'text')
    .addColumn('createdAt', 'bigint', required)
    .addColumn('endedAt', 'bigint')
    .execute();
  await db.schema
    .createIndex('outboxOpen')
    .on('outbox')
    .columns(['conversationKey', 'place'])
    .where(sql.ref('state'), 'in', [sql.lit('pending'), sql.lit('sending')])
    .execute();
  await db.schema.createIndex('outboxRun').on('outbox').column('runId').execute();
  await db.schema.createIndex('outboxTimeline').on('outbox').columns(['laneKey', 'seq']).execute();
}

async function createReceipts(db: Kysely<unknown>): Promise<void> {
  const table = db.schema
    .createTable('receipts')
    .addColumn('conversationKey', 'text', required)
    .addColumn('messageId', 'text', required)
    .addColumn('partKey', 'text', required)
    .addPrimaryKeyConstraint('receiptsKey', ['conversationKey', 'messageId']);
  await underKey(db, table).execute();
}

async function createSignIns(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('signIns')
    .addColumn('id', 'text', primary)
    .addColumn('secretHash', 'text', (column) => required(column).unique())
    .addColumn('issuer', 'text', required)
    .addColumn('browser', 'text', required)
    .addColumn('createdAt', 'bigint', required)
    .addColumn('lastSeenAt', 'bigint', required)
    .addColumn('expiresAt', 'bigint', required)
    .execute();
  await db.schema
    .createTable('lockouts')
    .addColumn('source', 'text', primary)
    .addColumn('until', 'bigint', required)
    .execute();
}

/**
 * Short rows that are found by their key alone lie in the key's own tree: in SQLite that is a page less to
 * write for each of them. Databases made before keep the layout they have.
 */
function underKey<Builder extends CreateTableBuilder<string, string>>(db: Kysely<unknown>, table: Builder) {
  const isSqlite = db.getExecutor().adapter instanceof SqliteAdapter;
  return isSqlite ? table.modifyEnd(sql`without rowid`) : table;
}

function primary(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.primaryKey();
}

function required(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull();
}

function fromZero(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull().defaultTo(0);
}

function fromOne(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull().defaultTo(1);
}
