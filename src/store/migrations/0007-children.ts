import { type ColumnDefinitionBuilder, type Kysely, sql } from 'kysely';

/** Sub-agents, the budgets of their trees, and the rows that are locked while a class is counted. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await createChildren(db);
  await db.schema
    .createTable('trees')
    .addColumn('id', 'text', primary)
    .addColumn('sessionId', 'text', required)
    .addColumn('live', 'integer', required)
    .addColumn('total', 'integer', required)
    .addColumn('createdAt', 'bigint', required)
    .addColumn('deadlineAt', 'bigint', required)
    .execute();
  await db.schema.createTable('laneClasses').addColumn('name', 'text', primary).execute();
}

async function createChildren(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('children')
    .addColumn('id', 'text', primary)
    .addColumn('treeId', 'text', required)
    .addColumn('parentSessionId', 'text', required)
    .addColumn('parentLaneKey', 'text', required)
    .addColumn('parentRunId', 'text', required)
    .addColumn('parentCallId', 'text', required)
    .addColumn('laneKey', 'text', (column) => required(column).unique())
    .addColumn('laneClass', 'text', required)
    .addColumn('agentId', 'text', required)
    .addColumn('depth', 'integer', required)
    .addColumn('label', 'text')
    .addColumn('task', 'text', required)
    .addColumn('mode', 'text', required)
    .addColumn('route', 'text')
    .addColumn('authority', 'text', required)
    .addColumn('state', 'text', required)
    .addColumn('status', 'text')
    .addColumn('result', 'text')
    .addColumn('promptTokens', 'bigint', fromZero)
    .addColumn('completionTokens', 'bigint', fromZero)
    .addColumn('cost', 'bigint', fromZero)
    .addColumn('told', 'text')
    .addColumn('stopReason', 'text')
    .addColumn('stopAt', 'bigint')
    .addColumn('timeoutMs', 'bigint')
    .addColumn('deadlineAt', 'bigint', required)
    .addColumn('createdAt', 'bigint', required)
    .addColumn('startedAt', 'bigint')
    .addColumn('endedAt', 'bigint')
    .addColumn('archivedAt', 'bigint')
    .execute();
  await db.schema
    .createIndex('childrenOf')
    .on('children')
    .columns(['parentSessionId', 'createdAt'])
    .execute();
  await db.schema.createIndex('childrenOfRun').on('children').column('parentRunId').execute();
  await db.schema.createIndex('childrenOfTree').on('children').column('treeId').execute();
  // Few: what the sweep looks at, and who is next when a class has room.
  await db.schema
    .createIndex('childrenLive')
    .on('children')
    .columns(['laneClass', 'state', 'createdAt'])
    .where(sql.ref('endedAt'), 'is', null)
    .execute();
  await db.schema
    .createIndex('childrenKept')
    .on('children')
    .column('endedAt')
    .where(sql.ref('archivedAt'), 'is', null)
    .execute();
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
