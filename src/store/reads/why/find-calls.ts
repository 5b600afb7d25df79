import type { Tx } from '../../base/command.ts';
import type { NamedCandidate } from './trace.ts';

/** How many of the latest calls are found by their ids alone: models choose the ids, and an index would cost more. */
const latestCalls = 10_000;
/** Maximum number of calls offered; more than anybody wants to choose from. */
const maxCalls = 20;

/** Finds the tool calls named `<run>/<call>` or `<message>/<call>`, or by the call's id alone among the latest. */
export async function findCalls(tx: Tx, id: string): Promise<readonly NamedCandidate[]> {
  const slash = id.indexOf('/');
  const rows =
    slash < 0 ? await findLatest(tx, id) : await findIn(tx, id.slice(0, slash), id.slice(slash + 1));
  return rows.map(({ messageId, callId, startedAt, endedAt, begunAt }) => ({
    asked: { kind: 'call', messageId, callId },
    candidate: { name: `${messageId}/${callId}`, what: 'called', at: startedAt ?? endedAt ?? begunAt },
  }));
}

function calls(tx: Tx) {
  return tx.db
    .selectFrom('toolCalls')
    .innerJoin('runs', 'runs.id', 'toolCalls.runId')
    .select(['toolCalls.messageId', 'toolCalls.callId', 'toolCalls.startedAt', 'toolCalls.endedAt'])
    .select('runs.startedAt as begunAt')
    .limit(maxCalls);
}

async function findIn(tx: Tx, owner: string, callId: string) {
  const ofMessage = calls(tx).where('toolCalls.messageId', '=', owner).where('toolCalls.callId', '=', callId);
  const ofRun = calls(tx).where('toolCalls.runId', '=', owner).where('toolCalls.callId', '=', callId);
  return [...(await ofMessage.execute()), ...(await ofRun.execute())];
}

/** Searches the latest calls. Message ids begin with their time, so the key has the calls in roughly the order made. */
async function findLatest(tx: Tx, callId: string) {
  const latest = tx.db
    .selectFrom('toolCalls')
    .select(['messageId', 'callId'])
    .orderBy('messageId', 'desc')
    .limit(latestCalls)
    .as('latest');
  const named = await tx.db
    .selectFrom(latest)
    .select('latest.messageId')
    .where('latest.callId', '=', callId)
    .limit(maxCalls)
    .execute();
  const messageIds = named.map(({ messageId }) => messageId);
  if (messageIds.length === 0) return [];
  return calls(tx)
    .where('toolCalls.messageId', 'in', messageIds)
    .where('toolCalls.callId', '=', callId)
    .execute();
}
