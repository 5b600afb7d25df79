import type { Tx } from '../../base/command.ts';
import { isOpenItem } from '../../base/index-predicates.ts';
import { findRow, readRow, withoutNulls } from '../../base/row-access.ts';
import { readLaneRun } from './read-items.ts';

/** A session as shown by `why`. */
export type SessionFacts = Awaited<ReturnType<typeof readSession>>;

/** Reads the session with this id, which must exist. */
export async function readSession(tx: Tx, id: string) {
  const row = await tx.db
    .selectFrom('sessions')
    .select(['id', 'key as laneKey', 'agentId', 'parentSessionId', 'messageCount'])
    .select(['cost', 'createdAt', 'updatedAt', 'endedAt'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  const own = tx.db.selectFrom('lanes').select('sessionId').where('key', '=', row.laneKey);
  const isCurrent = (await own.executeTakeFirst())?.sessionId === id;
  return {
    ...withoutNulls(row),
    /** The session that replaced it. */
    nextSessionId: isCurrent ? undefined : await readNext(tx, row),
    /** The last run that wrote to it. */
    lastRunId: await readLastRun(tx, id),
    /** Its lane, while this is the lane's current session. */
    lane: isCurrent ? await readLane(tx, row.laneKey) : undefined,
  };
}

type SessionPlace = { readonly laneKey: string; readonly createdAt: number; readonly id: string };

async function readNext(tx: Tx, { laneKey, createdAt, id }: SessionPlace): Promise<string | undefined> {
  const row = await tx.db
    .selectFrom('sessions')
    .select('id')
    .where('key', '=', laneKey)
    .where('createdAt', '>=', createdAt)
    .where('id', '<>', id)
    .orderBy('createdAt')
    .limit(1)
    .executeTakeFirst();
  return row?.id;
}

/** Finds the run by the session's last message; later notes have no run. */
async function readLastRun(tx: Tx, sessionId: string): Promise<string | undefined> {
  const rows = await tx.db
    .selectFrom('transcript')
    .select('runId')
    .where('sessionId', '=', sessionId)
    .orderBy('position', 'desc')
    .limit(maxNotes)
    .execute();
  return rows.find(({ runId }) => runId !== null)?.runId ?? undefined;
}

const maxNotes = 50;

/** Maximum number of waiting items listed; more than anybody wants to read. */
const maxWaiting = 20;

/** A lane as shown by `why`. */
export type LaneFacts = Awaited<ReturnType<typeof readLane>>;

/** Reads the lane with this key, or the one that the key leads to. */
export async function readLane(tx: Tx, key: string) {
  const leadsTo = (await findRow(tx, 'laneAliases', key, ['laneKey']))?.laneKey;
  const lane = await readRow(tx, 'lanes', leadsTo ?? key, ['agentId', 'mode', 'sessionId', 'lastActivityAt']);
  const open = () =>
    tx.db
      .selectFrom('inbox')
      .where('laneKey', '=', leadsTo ?? key)
      .where(isOpenItem());
  const waiting = await open().select('id').orderBy('rank').orderBy('seq').limit(maxWaiting).execute();
  const counted = open().select((eb) => eb.fn.countAll<number>().as('count'));
  return {
    key,
    /** The lane that its messages enter instead, because accounts were linked. */
    leadsTo,
    ...lane,
    run: await readLaneRun(tx, leadsTo ?? key),
    /** Ids of its open items, the next one first; at most `maxWaiting`. */
    waiting: waiting.map(({ id }) => id),
    waitingCount: Number((await counted.executeTakeFirst())?.count ?? 0),
  };
}
