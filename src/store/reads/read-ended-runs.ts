/** The ends of a lane's runs, in order, so that a follower learns each once, however long they were away. */
import { textOf } from '#contracts/message.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { findRow } from '../base/row-access.ts';

/** The end of a run. */
export type EndedRun = {
  readonly runId: string;
  /** Which end of the lane this was, from 1. */
  readonly number: number;
  /** `natural`, or why it ended otherwise. */
  readonly reason: string;
};

/** Reads the oldest `limit` ends after one. */
export const readEndedRuns: StoreQuery<
  { readonly laneKey: string; readonly after: number; readonly limit: number },
  readonly EndedRun[]
> = {
  query: 'readEndedRuns',
  run: async (tx, { laneKey, after, limit }) => {
    const rows = await tx.db
      .selectFrom('runs')
      .select(['id', 'endNumber', 'endReason'])
      .where('laneKey', '=', laneKey)
      .where('endNumber', 'is not', null)
      .where('endNumber', '>', after)
      .orderBy('endNumber')
      .limit(limit)
      .execute();
    return rows.map(({ id, endNumber, endReason }) => {
      return { runId: id, number: endNumber ?? 0, reason: endReason ?? '' };
    });
  },
};

/** Reads the lane's latest end; undefined before the first. */
export const readLastEnd: StoreQuery<{ readonly laneKey: string }, Omit<EndedRun, 'reason'> | undefined> = {
  query: 'readLastEnd',
  run: async (tx, { laneKey }) => {
    const row = await tx.db
      .selectFrom('runs')
      .select(['id', 'endNumber'])
      .where('laneKey', '=', laneKey)
      .where('endNumber', 'is not', null)
      .orderBy('endNumber', 'desc')
      .limit(1)
      .executeTakeFirst();
    return row && { runId: row.id, number: row.endNumber ?? 0 };
  },
};

/** Where a run is, and whether it has ended. */
export type RunPlace = {
  readonly laneKey: string;
  /** Another one if its message was merged into that. */
  readonly runId: string;
  /** Absent while it hasn't ended. */
  readonly end?: {
    /** `natural`, or why it ended otherwise. */
    readonly reason: string;
    /** The last answer as the model wrote it; absent if there is none. */
    readonly answer?: string;
  };
};

/** Finds a run by its id, or by the id that was reserved for it when its message arrived. */
export const findRunPlace: StoreQuery<{ readonly runId: string }, RunPlace | undefined> = {
  query: 'findRunPlace',
  run: async (tx, { runId }) => {
    const item = await tx.db
      .selectFrom('inbox')
      .select(['laneKey', 'runId', 'state', 'outcome'])
      .where('reservedRunId', '=', runId)
      .executeTakeFirst();
    const taken = item?.runId ?? runId;
    const run = await findRow(tx, 'runs', taken, ['laneKey', 'state', 'endReason']);
    if (run) {
      const isOver = run.state === 'finished';
      const end = isOver && { reason: run.endReason ?? '', ...(await readAnswer(tx, taken)) };
      return { laneKey: run.laneKey, runId: taken, ...(end && { end }) };
    }
    if (item === undefined) return undefined;
    const { laneKey, state, outcome } = item;
    // No run ever took it.
    return { laneKey, runId, ...(state === 'ended' && { end: { reason: outcome ?? '' } }) };
  },
};

async function readAnswer(tx: Tx, runId: string): Promise<{ readonly answer?: string }> {
  const answered = await tx.db
    .selectFrom('inbox')
    .innerJoin('transcript', 'transcript.id', 'inbox.answer')
    .select('transcript.parts')
    .where('inbox.runId', '=', runId)
    .where('inbox.outcome', '=', 'answered')
    .orderBy('inbox.seq', 'desc')
    .limit(1)
    .executeTakeFirst();
  return answered ? { answer: textOf(json.parts(answered.parts)) } : {};
}

/** Says whether there is such a lane. */
export const findLane: StoreQuery<{ readonly laneKey: string }, boolean> = {
  query: 'findLane',
  run: async (tx, { laneKey }) => (await findRow(tx, 'lanes', laneKey, ['key'])) !== undefined,
};
