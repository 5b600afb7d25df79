import { type MessagePart, textOf } from '#contracts/message.ts';
import type { Usage } from '#contracts/model.ts';
import type { Outcome } from '#contracts/outcome.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { findRow, sumOf } from '../base/row-access.ts';

/** State of an item for which a run id was reserved. Times are ms since the epoch. */
export type RunResult =
  | { readonly kind: 'unknown' }
  | {
      readonly kind: 'open';
      readonly laneKey: string;
      readonly mergedInto?: string;
      /** Absent while the item waits. */
      readonly startedAt?: number;
    }
  | {
      readonly kind: 'ended';
      readonly laneKey: string;
      /** The run that took the item, if it isn't the reserved one. */
      readonly mergedInto?: string;
      readonly outcome: Outcome;
      /** Why it failed, was cancelled or was refused. */
      readonly reason?: string;
      /** The answer, at most `maxResultChars` of it; empty if the agent gave none. */
      readonly text: string;
      readonly usage: RunUsage;
      readonly startedAt?: number;
      readonly endedAt?: number;
    };

/** Totals over all model calls of the run; the cost is in micro-dollars. */
export type RunUsage = Usage & { readonly cost: number };

/** Maximum length of a result's text, UTF-16 units. */
const maxResultChars = 100_000;

/** How many texts of a run are read. */
const maxTexts = 100;

/** Follows a reserved run id to its item, and from the item to the run that took it. */
export const readRunResult: StoreQuery<{ readonly runId: string }, RunResult> = {
  query: 'readRunResult',
  run: async (tx, { runId }) => {
    const item = await tx.db
      .selectFrom('inbox')
      .select(['laneKey', 'state', 'outcome', 'outcomeReason', 'runId', 'answer'])
      .where('reservedRunId', '=', runId)
      .executeTakeFirst();
    if (!item) return { kind: 'unknown' };
    const { laneKey } = item;
    const taken = item.runId ?? undefined;
    const merged = taken === undefined || taken === runId ? {} : { mergedInto: taken };
    const times = taken === undefined ? {} : await readTimes(tx, taken);
    if (item.state !== 'ended' || item.outcome === null)
      return { kind: 'open', laneKey, ...merged, ...times };
    const end = taken === undefined ? item : await endOf(tx, taken, item);
    return {
      kind: 'ended',
      laneKey,
      ...merged,
      // Written only by the store itself, as outcomes.
      outcome: end.outcome as Outcome,
      ...(end.outcomeReason !== null && { reason: end.outcomeReason }),
      text: item.answer === null ? '' : await readAnswer(tx, item.answer),
      usage: await readUsage(tx, taken ?? ''),
      ...times,
    };
  },
};

type EndedItem = {
  readonly outcome: string | null;
  readonly outcomeReason: string | null;
  readonly answer: string | null;
};

/** Returns the end of the item that a merged item was merged into: one answer covers all of them. */
async function endOf(tx: Tx, runId: string, item: EndedItem): Promise<EndedItem> {
  if (item.outcome !== 'merged') return item;
  const into = await tx.db
    .selectFrom('inbox')
    .select(['outcome', 'outcomeReason', 'answer'])
    .where('runId', '=', runId)
    .where('outcome', '<>', 'merged')
    .orderBy('seq', 'desc')
    .execute();
  return into.find(({ answer }) => answer === item.answer) ?? into[0] ?? item;
}

async function readAnswer(tx: Tx, id: string): Promise<string> {
  const row = await findRow(tx, 'transcript', id, ['parts']);
  const parts: readonly MessagePart[] = row ? json.parts(row.parts) : [];
  return textOf(parts).slice(0, maxResultChars).toWellFormed();
}

function readUsage(tx: Tx, runId: string): Promise<RunUsage> {
  return tx.db
    .selectFrom('modelCalls')
    .select([sumOf('inputTokens'), sumOf('outputTokens'), sumOf('cost')])
    .select([sumOf('cacheReadTokens'), sumOf('cacheWriteTokens')])
    .where('runId', '=', runId)
    .executeTakeFirstOrThrow();
}

/** Reads when the message of a reserved run id arrived, and in which lane. */
export const readArrival: StoreQuery<
  { readonly runId: string },
  { readonly laneKey: string; readonly acceptedAt: number } | undefined
> = {
  query: 'readArrival',
  run: async (tx, { runId }) => {
    const item = await tx.db
      .selectFrom('inbox')
      .select(['laneKey', 'createdAt'])
      .where('reservedRunId', '=', runId)
      .executeTakeFirst();
    return item && { laneKey: item.laneKey, acceptedAt: item.createdAt };
  },
};

/** Reads the texts of the run that took a reserved id's message, as the model wrote them, oldest first. */
export const readRunTexts: StoreQuery<{ readonly runId: string }, readonly string[]> = {
  query: 'readRunTexts',
  run: async (tx, { runId }) => {
    const item = await tx.db
      .selectFrom('inbox')
      .innerJoin('transcript', 'transcript.id', 'inbox.transcriptId')
      .select(['inbox.runId', 'transcript.sessionId', 'transcript.position'])
      .where('inbox.reservedRunId', '=', runId)
      .executeTakeFirst();
    if (!item) return [];
    const rows = await tx.db
      .selectFrom('transcript')
      .select('parts')
      .where('sessionId', '=', item.sessionId)
      .where('position', '>', item.position)
      .where('runId', '=', item.runId)
      .where('role', '=', 'assistant')
      .orderBy('position')
      .limit(maxTexts)
      .execute();
    return rows.map(({ parts }) => textOf(json.parts(parts)).slice(0, maxResultChars).toWellFormed());
  },
};

async function readTimes(tx: Tx, runId: string) {
  const run = await findRow(tx, 'runs', runId, ['startedAt', 'endedAt']);
  return {
    ...(run && { startedAt: run.startedAt }),
    ...(run?.endedAt != null && { endedAt: run.endedAt }),
  };
}
