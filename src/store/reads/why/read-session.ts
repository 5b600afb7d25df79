import type { Tx } from '../../base/command.ts';
import { isOpenItem } from '../../base/index-predicates.ts';
import { readLaneRun } from './read-items.ts';
import type { LaneFacts, SessionFacts } from './record.ts';

/** The session of this id, which exists. */
export async function readSession(tx: Tx, id: string): Promise<SessionFacts> {
  const row = await tx.db
    .selectFrom('sessions')
    .select(['id', 'key', 'agentId', 'parentSessionId', 'messageCount'])
    .select(['cost', 'createdAt', 'updatedAt', 'endedAt'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  const { key, parentSessionId, endedAt, ...session } = row;
  const own = tx.db.selectFrom('lanes').select('sessionId').where('key', '=', key);
  const isCurrent = (await own.executeTakeFirst())?.sessionId === id;
  return {
    ...session,
    laneKey: key,
    parentSessionId: parentSessionId ?? undefined,
    endedAt: endedAt ?? undefined,
    nextSessionId: isCurrent ? undefined : await readNext(tx, { key, createdAt: row.createdAt, id }),
    lastRunId: await readLastRun(tx, id),
    lane: isCurrent ? await readLane(tx, key) : undefined,
  };
}

type SessionPlace = { readonly key: string; readonly createdAt: number; readonly id: string };

async function readNext(tx: Tx, { key, createdAt, id }: SessionPlace): Promise<string | undefined> {
  const row = await tx.db
    .selectFrom('sessions')
    .select('id')
    .where('key', '=', key)
    .where('createdAt', '>=', createdAt)
    .where('id', '<>', id)
    .orderBy('createdAt')
    .limit(1)
    .executeTakeFirst();
  return row?.id;
}

/** Finds the run by the session's last message; notes that were left since have none. */
async function readLastRun(tx: Tx, sessionId: string): Promise<string | undefined> {
  const rows = await tx.db
    .selectFrom('transcript')
    .select('runId')
    .where('sessionId', '=', sessionId)
    .orderBy('position', 'desc')
    .limit(mostNotes)
    .execute();
  return rows.find(({ runId }) => runId !== null)?.runId ?? undefined;
}

const mostNotes = 50;

/** More messages than anybody wants to read. */
const mostWaiting = 20;

/** The lane of this key, or the one that the key leads to. */
export async function readLane(tx: Tx, key: string): Promise<LaneFacts> {
  const alias = tx.db.selectFrom('laneAliases').select('laneKey').where('key', '=', key);
  const leadsTo = (await alias.executeTakeFirst())?.laneKey;
  const lane = await tx.db
    .selectFrom('lanes')
    .select(['agentId', 'mode', 'sessionId', 'lastActivityAt'])
    .where('key', '=', leadsTo ?? key)
    .executeTakeFirstOrThrow();
  const open = () =>
    tx.db
      .selectFrom('inbox')
      .where('laneKey', '=', leadsTo ?? key)
      .where(isOpenItem());
  const waiting = await open().select('id').orderBy('rank').orderBy('seq').limit(mostWaiting).execute();
  const counted = open().select((eb) => eb.fn.countAll<number>().as('count'));
  return {
    key,
    leadsTo,
    ...lane,
    run: await readLaneRun(tx, leadsTo ?? key),
    waiting: waiting.map(({ id }) => id),
    waitingCount: Number((await counted.executeTakeFirst())?.count ?? 0),
  };
}
