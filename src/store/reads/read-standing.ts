import type { TimelineStanding } from '#contracts/timeline.ts';
import type { StoreQuery } from '../base/command.ts';

/** Most tools listed; a batch may have started more. */
const mostTools = 20;

/** The lane's run, in any process, its active tools, and what it waits for when it is parked. */
export const readStanding: StoreQuery<{ readonly laneKey: string }, TimelineStanding> = {
  query: 'readStanding',
  run: async (tx, { laneKey }) => {
    const run = await tx.db
      .selectFrom('lanes')
      .innerJoin('runs', 'runs.id', 'lanes.runId')
      .select(['runs.id', 'runs.parkReason', 'runs.state'])
      .where('lanes.key', '=', laneKey)
      .executeTakeFirst();
    if (!run) return {};
    const calls = await tx.db
      .selectFrom('toolCalls')
      .select('name')
      .where('runId', '=', run.id)
      .where('state', 'in', ['started', 'waiting'])
      .orderBy('messageId')
      .orderBy('ordinal')
      .limit(mostTools)
      .execute();
    const waitsFor = run.state === 'parked' ? { waitsFor: run.parkReason ?? '' } : {};
    return { run: { runId: run.id, tools: calls.map(({ name }) => name), ...waitsFor } };
  },
};
