import type { Selectable } from 'kysely';
import { waitExpired } from '#contracts/message.ts';
import type { Tx } from '../../base/command.ts';
import type { RunsTable } from '../../base/run-tables.ts';
import type { ModelCallFacts, RunFacts, ToolCallFacts } from './trace.ts';

/** In the order in which they began. */
export async function readRuns(tx: Tx, ids: readonly string[]): Promise<readonly RunFacts[]> {
  if (ids.length === 0) return [];
  const rows = await tx.db.selectFrom('runs').selectAll().where('id', 'in', ids).execute();
  const runs: RunFacts[] = [];
  for (const row of rows) runs.push(await factsOf(tx, row));
  return runs.sort((a, b) => a.startedAt - b.startedAt);
}

async function factsOf(tx: Tx, row: Selectable<RunsTable>): Promise<RunFacts> {
  const { id, laneKey, sessionId, authority, state, attempts, startedAt } = row;
  return {
    id,
    laneKey,
    sessionId,
    authority,
    state,
    attempts,
    isHandedOver: row.isHandedOver === 1 && row.parkedAt === null,
    cancelReason: row.cancelReason ?? undefined,
    endReason: row.endReason ?? undefined,
    detail: row.detail ?? undefined,
    parkedAt: row.parkedAt ?? undefined,
    parkReason: row.parkReason ?? undefined,
    startedAt,
    endedAt: row.endedAt ?? undefined,
    toolCalls: await readToolCalls(tx, id),
    modelCalls: await readModelCalls(tx, id),
    summaries: await readSummaries(tx, row),
    transcript: await readMessages(tx, row),
  };
}

async function readToolCalls(tx: Tx, runId: string): Promise<readonly ToolCallFacts[]> {
  const rows = await tx.db
    .selectFrom('toolCalls')
    .select(['callId', 'messageId', 'name', 'state', 'isError', 'startedAt', 'endedAt', 'ordinal'])
    // The words of every such result, whatever it begins with.
    .select((eb) => eb('result', 'like', '%outcome unknown%').as('isUnknown'))
    .select((eb) => eb('result', 'like', `%${waitExpired}%`).as('isExpired'))
    .where('runId', '=', runId)
    .orderBy('startedAt')
    .orderBy('ordinal')
    .execute();
  return rows.map(({ ordinal: _, isError, isUnknown, isExpired, startedAt, endedAt, ...row }) => ({
    ...row,
    isError: isError === 1,
    isUnknown: isError === 1 && Boolean(isUnknown),
    isExpired: isError === 1 && Boolean(isExpired),
    startedAt: startedAt ?? undefined,
    endedAt: endedAt ?? undefined,
  }));
}

async function readModelCalls(tx: Tx, runId: string): Promise<readonly ModelCallFacts[]> {
  const rows = await tx.db
    .selectFrom('modelCalls')
    .select([
      'model',
      'purpose',
      'state',
      'inputTokens',
      'outputTokens',
      'cacheReadTokens',
      'cacheWriteTokens',
      'cost',
      'latencyMs',
      'withoutTools',
      'at',
    ])
    .where('runId', '=', runId)
    .orderBy('at')
    .execute();
  return rows.map(({ withoutTools, ...row }) => ({ ...row, isWithoutTools: withoutTools === 1 }));
}

async function readSummaries(
  tx: Tx,
  { id, sessionId }: Pick<Selectable<RunsTable>, 'id' | 'sessionId'>,
): Promise<RunFacts['summaries']> {
  return tx.db
    .selectFrom('transcript')
    .select(['id', 'createdAt as at'])
    .where('sessionId', '=', sessionId)
    .where('isSummary', '=', 1)
    .where('runId', '=', id)
    .orderBy('position')
    .execute();
}

/** More messages than a run has, notes of others that fell in between included. */
const mostMessages = 1000;

/** The transcript is ordered by session: a run's messages begin where its first message was taken. */
async function readMessages(
  tx: Tx,
  { id, sessionId }: Pick<Selectable<RunsTable>, 'id' | 'sessionId'>,
): Promise<RunFacts['transcript']> {
  const first = await tx.db
    .selectFrom('inbox')
    .innerJoin('transcript', 'transcript.id', 'inbox.transcriptId')
    .select((eb) => eb.fn.min('transcript.position').as('position'))
    .where('inbox.runId', '=', id)
    .where('transcript.sessionId', '=', sessionId)
    .executeTakeFirst();
  if (first?.position == null) return [];
  const rows = await tx.db
    .selectFrom('transcript')
    .select(['id', 'role', 'createdAt', 'runId'])
    .where('sessionId', '=', sessionId)
    // In front of it may stand what was overheard, shown to the run with it.
    .where('position', '>=', Number(first.position) - 2)
    .orderBy('position')
    .limit(mostMessages)
    .execute();
  return rows
    .filter((row) => row.runId === id)
    .map((row) => ({ id: row.id, role: row.role, at: row.createdAt }));
}
