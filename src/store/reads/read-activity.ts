import type { QueueMode } from '#contracts/queue-settings.ts';
import type { TimelineActivity } from '#contracts/timeline.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { findRow } from '../base/row-by-key.ts';
import { readConversationChildren } from './read-conversation-children.ts';

/** Maximum number of tools listed; a batch may have started more. */
const mostTools = 20;
/** Maximum number of listed sub-agents that the conversation itself spawned. */
const mostChildren = 50;

/** Reads the lane's run, in any process, with its active tools and reason for waiting, and the lane's sub-agents. */
export const readActivity: StoreQuery<{ readonly laneKey: string }, TimelineActivity> = {
  query: 'readActivity',
  run: async (tx, { laneKey }) => {
    const children = await readConversationChildren.run(tx, { laneKeys: [laneKey], limit: mostChildren });
    const lane = await findRow(tx, 'lanes', laneKey, ['mode']);
    return {
      ...(await readRun(tx, laneKey)),
      ...(lane && { queueMode: lane.mode as QueueMode }),
      ...(children.length > 0 && { children }),
    };
  },
};

async function readRun(tx: Tx, laneKey: string): Promise<Pick<TimelineActivity, 'run'>> {
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
}
