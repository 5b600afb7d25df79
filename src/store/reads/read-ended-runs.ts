/** The ends of a lane's runs, in order, so that a follower learns each once, however long they were away. */
import type { StoreQuery } from '../base/command.ts';
import { findRow } from '../base/row-access.ts';

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
    return rows.map(({ id, endNumber, endReason }) => ({
      ...{ runId: id, number: endNumber ?? 0, reason: endReason ?? '' },
    }));
  },
};

/** Reads the number of the lane's latest end; 0 before the first. */
export const readLastEnd: StoreQuery<{ readonly laneKey: string }, number> = {
  query: 'readLastEnd',
  run: async (tx, { laneKey }) => {
    const row = await tx.db
      .selectFrom('runs')
      .select('endNumber')
      .where('laneKey', '=', laneKey)
      .where('endNumber', 'is not', null)
      .orderBy('endNumber', 'desc')
      .limit(1)
      .executeTakeFirst();
    return row?.endNumber ?? 0;
  },
};

/** Where a run is, and whether it has ended. */
export type RunPlace = {
  readonly laneKey: string;
  /** Another one if its message was merged into that. */
  readonly runId: string;
  /** `natural`, or why it ended otherwise; absent while it hasn't. */
  readonly endReason?: string;
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
    if (run)
      return {
        ...{ laneKey: run.laneKey, runId: taken },
        ...(run.state === 'finished' && { endReason: run.endReason ?? '' }),
      };
    if (item === undefined) return undefined;
    const { laneKey, state, outcome } = item;
    // No run ever took it.
    return { laneKey, runId, ...(state === 'ended' && { endReason: outcome ?? '' }) };
  },
};

/** Says whether there is such a lane. */
export const findLane: StoreQuery<{ readonly laneKey: string }, boolean> = {
  query: 'findLane',
  run: async (tx, { laneKey }) => (await findRow(tx, 'lanes', laneKey, ['key'])) !== undefined,
};
