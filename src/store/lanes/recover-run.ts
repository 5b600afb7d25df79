import type { MessagePart } from '#contracts/message.ts';
import { type CallApproval, readCallApprovals } from '../approvals/call-approval.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { changeRow } from '../base/row-access.ts';
import { lockLaneAt } from '../rows/lane.ts';
import type { RunFence } from '../rows/run.ts';

/** A run's tool call and its progress: it is `started` from the commit before its tool runs. */
export type RunCall = {
  readonly callId: string;
  readonly messageId: string;
  readonly state: 'pending' | 'started' | 'done';
  /** The question that a person was asked about it. */
  readonly question?: Pick<CallApproval, 'state' | 'input' | 'digest'>;
  /** The call itself, if a summary has replaced its message; only for the newest such calls. */
  readonly summarized?: SummarizedCall;
};

type SummarizedCall = { readonly name: string; readonly input: string };

/**
 * Prepares an unfinished run for its next holder: messages that were still being written are marked
 * interrupted and leave the context. Returns all calls of the run, in source order. Safe to repeat.
 */
export const recoverRun: StoreCommand<RunFence, readonly RunCall[]> = {
  name: 'recoverRun',
  run: async (tx, { laneKey, epoch, runId }) => {
    await lockLaneAt(tx, laneKey, epoch);
    await interruptUnfinished(tx, runId);
    const calls = await tx.db
      .selectFrom('toolCalls')
      .innerJoin('transcript', 'transcript.id', 'toolCalls.messageId')
      .select(['callId', 'toolCalls.messageId', 'state'])
      .where('toolCalls.runId', '=', runId)
      .orderBy('transcript.position')
      .orderBy('ordinal')
      .execute();
    const summarized = await readSummarizedCalls(tx, runId);
    const questions = await readCallApprovals(tx, runId);
    return calls.map((call) => {
      const known = summarized.get(`${call.messageId} ${call.callId}`);
      // A waiting call has started: depending on its replay class it is made again or reported as unknown.
      const state = call.state === 'waiting' ? 'started' : call.state;
      const question = questions.find(
        ({ callId, messageId }) => callId === call.callId && messageId === call.messageId,
      );
      return { ...call, state, ...(known && { summarized: known }), ...(question && { question }) };
    });
  },
};

/** How many identical calls in a row are remembered; `limits.repeatedCalls` can't be larger. */
const guarded = 100;

/** Reads the run's newest calls that its model no longer sees, by message and call. */
async function readSummarizedCalls(tx: Tx, runId: string): Promise<ReadonlyMap<string, SummarizedCall>> {
  const rows = await tx.db
    .selectFrom('toolCalls')
    .innerJoin('transcript', 'transcript.id', 'toolCalls.messageId')
    .innerJoin('sessions', 'sessions.id', 'transcript.sessionId')
    .select(['toolCalls.messageId', 'toolCalls.callId', 'toolCalls.name', 'toolCalls.input'])
    .where('toolCalls.runId', '=', runId)
    .whereRef('transcript.position', '<', 'sessions.keptFrom')
    .orderBy('transcript.position', 'desc')
    .orderBy('ordinal', 'desc')
    .limit(guarded)
    .execute();
  return new Map(
    rows.map(({ messageId, callId, name, input }) => [`${messageId} ${callId}`, { name, input }]),
  );
}

/** Marks the unfinished message as interrupted. The caller must hold the lane's lock. */
export async function interruptUnfinished(tx: Tx, runId: string): Promise<void> {
  const unfinished = await tx.db
    .selectFrom('transcript')
    .select(['id', 'parts'])
    // The transcript is indexed by session and position: without them the query would read all of it.
    .where('sessionId', '=', (eb) => eb.selectFrom('runs').select('sessionId').where('runs.id', '=', runId))
    .where('position', '>', (eb) => eb.fn.coalesce(firstTaken(tx, runId), eb.lit(0)))
    .where('runId', '=', runId)
    .where('role', '=', 'assistant')
    .where('isFinished', '=', 0)
    .execute();
  for (const row of unfinished) {
    const finish: MessagePart = { type: 'finish', data: { reason: 'interrupted', time: tx.now } };
    const parts = JSON.stringify([...json.parts(row.parts), finish]);
    await changeRow(tx, 'transcript', row.id, { parts, isFinished: 1, updatedAt: tx.now });
  }
}

/** Selects the position of the first message that the run took: everything it writes comes later. */
function firstTaken({ db }: Tx, runId: string) {
  return db
    .selectFrom('inbox')
    .innerJoin('transcript as taken', 'taken.id', 'inbox.transcriptId')
    .select((eb) => eb.fn.min('taken.position').as('position'))
    .where('inbox.runId', '=', runId);
}

/** A tool result stored by another attempt at the run. */
export type PriorToolResult = { readonly tool: string; readonly parts: readonly MessagePart[] };

/**
 * Reads the results of the run's tools since its last delivered answer. They show a resumed run what the person
 * already knows, so that its answer doesn't repeat it.
 */
export const readToolResults: StoreQuery<{ readonly runId: string }, readonly PriorToolResult[]> = {
  query: 'readToolResults',
  run: async (tx, { runId }) => {
    const lastAnswer = tx.db
      .selectFrom('transcript')
      .innerJoin('outbox', 'outbox.answer', 'transcript.id')
      .select((eb) => eb.fn.max('transcript.position').as('position'))
      .where('outbox.runId', '=', runId);
    const rows = await tx.db
      .selectFrom('toolCalls')
      .innerJoin('transcript', 'transcript.id', 'toolCalls.messageId')
      .select(['toolCalls.name', 'toolCalls.result'])
      .where('toolCalls.runId', '=', runId)
      .where('toolCalls.state', '=', 'done')
      .where('toolCalls.isError', '=', 0)
      .where((eb) => eb('transcript.position', '>', eb.fn.coalesce(lastAnswer, eb.lit(0))))
      .orderBy('transcript.position')
      .orderBy('toolCalls.ordinal')
      .execute();
    return rows.map(({ name, result }) => ({ tool: name, parts: json.parts(result ?? '[]') }));
  },
};

/** A run's preview message that exists on the platform. */
export type LivePreview = { readonly key: string; readonly messageId: string };

/** Reads the run's preview message on the platform, so that a resumed run can edit it. */
export const readPreview: StoreQuery<{ readonly runId: string }, LivePreview | undefined> = {
  query: 'readPreview',
  run: (tx, { runId }) => findPreview(tx, runId),
};

export async function findPreview(tx: Tx, runId: string): Promise<LivePreview | undefined> {
  const row = await tx.db
    .selectFrom('outbox')
    .select(['key', 'receipts'])
    .where('runId', '=', runId)
    .where('purpose', '=', 'preview')
    .where('state', '=', 'sent')
    .where('endedAt', 'is', null)
    .orderBy('createdAt', 'desc')
    .executeTakeFirst();
  const messageId = json.strings(row?.receipts ?? null)[0];
  return row && messageId !== undefined ? { key: row.key, messageId } : undefined;
}
