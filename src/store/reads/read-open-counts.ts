import { sql } from 'kysely';
import { longestWaitMs } from '#channel-kit/remote-number.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { isOpenItem, isOpenPart } from '../base/index-predicates.ts';
import { countLiveChildren, countOrphans, type LiveChildren } from './count-children.ts';

/** Counts of open work. The cost depends on the open rows, not on the history. */
export type OpenCounts = {
  /** Inbox rows by state; corrections and commands that wait in a lane's order are among them. */
  readonly items: { readonly held: number; readonly waiting: number };
  /** When the message that waits longest arrived, ms since the epoch. */
  readonly oldestWaitingSince: number | undefined;
  readonly lanes: {
    /** A process runs them. */
    readonly active: number;
    /** Their run waits for something outside, without slot or lease. */
    readonly parked: number;
    /** Their run is unfinished and nobody holds it: the sweep brings it to a worker. */
    readonly unheld: number;
    /** Something waits in them for a later moment. */
    readonly armed: number;
    /** Something is due in them and nobody works on it yet. */
    readonly due: number;
  };
  /** Outbox parts that are still to be delivered. */
  readonly parts: {
    readonly pending: number;
    readonly sending: number;
    /** When the oldest of them was stored, ms since the epoch. */
    readonly oldestSince: number | undefined;
    /** Their platform has made them wait for five minutes, or asks for more; those after them are among them. */
    readonly asked: number;
    /** Others that were stored more than five minutes ago. */
    readonly late: number;
  };
  readonly children: readonly LiveChildren[];
  /** Live children that nobody would hear of. */
  readonly orphans: number;
  /** By the database's clock, or this process's for SQLite. */
  readonly now: number;
};

/** Counts everything that is still open, for `/metrics`. */
export const readOpenCounts: StoreQuery<Record<never, never>, OpenCounts> = {
  query: 'readOpenCounts',
  usesClock: true,
  run: async (tx) => {
    const { held, waiting, since } = await countItems(tx);
    const withRun = await countLanesWithRun(tx);
    const { armed, due } = await countLanesThatWait(tx);
    const parts = await countParts(tx);
    return {
      items: { held, waiting },
      oldestWaitingSince: since,
      lanes: { ...withRun, armed, due },
      parts: { ...parts, ...(await countLongWaits(tx)) },
      children: await countLiveChildren(tx),
      orphans: await countOrphans(tx),
      now: tx.now,
    };
  },
};

async function countItems(tx: Tx) {
  const rows = await tx.db
    .selectFrom('inbox')
    .select((eb) => ['state', eb.fn.countAll<number>().as('count'), eb.fn.min('createdAt').as('since')])
    .where(isOpenItem())
    .groupBy('state')
    .execute();
  const of = (state: string) => rows.find((row) => row.state === state);
  const waiting = of('waiting');
  return {
    held: Number(of('held')?.count ?? 0),
    waiting: Number(waiting?.count ?? 0),
    since: waiting && Number(waiting.since),
  };
}

async function countLanesWithRun(tx: Tx) {
  const rows = await tx.db
    .selectFrom('lanes')
    .innerJoin('runs', 'runs.id', 'lanes.runId')
    .select((eb) => [
      eb
        .case()
        .when('runs.state', '=', 'parked')
        .then(sql.lit('parked'))
        .when('lanes.leaseUntil', '>', tx.now)
        .then(sql.lit('active'))
        .else(sql.lit('unheld'))
        .end()
        .as('state'),
      eb.fn.countAll<number>().as('count'),
    ])
    .where('lanes.runId', 'is not', null)
    // By the case, not by a column of that name.
    .groupBy(sql`1`)
    .execute();
  const of = (state: string) => Number(rows.find((row) => row.state === state)?.count ?? 0);
  return { active: of('active'), parked: of('parked'), unheld: of('unheld') };
}

/** Lanes without a run in which something waits: for a later moment, or for somebody to work on it. */
async function countLanesThatWait(tx: Tx) {
  const byLane = tx.db
    .selectFrom('inbox')
    .innerJoin('lanes', 'lanes.key', 'inbox.laneKey')
    .select((eb) => ['inbox.laneKey', eb.fn.min('inbox.dueAt').as('dueAt')])
    .where(isOpenItem())
    .where('inbox.state', '=', 'waiting')
    .where('lanes.runId', 'is', null)
    .groupBy('inbox.laneKey');
  const row = await tx.db
    .selectFrom(byLane.as('waiting'))
    .select((eb) => [
      eb.fn.countAll<number>().as('lanes'),
      eb.fn.sum<number>(eb.case().when('dueAt', '>', tx.now).then(1).else(0).end()).as('armed'),
    ])
    .executeTakeFirst();
  const armed = Number(row?.armed ?? 0);
  return { armed, due: Number(row?.lanes ?? 0) - armed };
}

async function countParts(tx: Tx) {
  const rows = await tx.db
    .selectFrom('outbox')
    .select((eb) => ['state', eb.fn.countAll<number>().as('count'), eb.fn.min('createdAt').as('since')])
    .where(isOpenPart())
    .where('purpose', '<>', 'preview')
    .groupBy('state')
    .execute();
  const of = (state: string) => Number(rows.find((row) => row.state === state)?.count ?? 0);
  const since = rows.map((row) => Number(row.since));
  const oldestSince = since.length === 0 ? undefined : Math.min(...since);
  return { pending: of('pending'), sending: of('sending'), oldestSince };
}

/** A part that its platform has made wait for long, or asks to, holds up all that follows it. */
async function countLongWaits(tx: Tx): Promise<{ readonly asked: number; readonly late: number }> {
  const asked = sql<boolean>`"outbox"."conversationKey" in (
    select "conversationKey" from "outbox" where ${isOpenPart()} and (
      "waitAskedSince" <= ${tx.now - longestWaitMs} or "waitAskedUntil" - "waitAskedSince" > ${longestWaitMs}))`;
  const rows = await tx.db
    .selectFrom('outbox')
    .select((eb) => [
      eb.case().when(asked).then(1).else(0).end().as('isAsked'),
      eb.fn.countAll<number>().as('count'),
    ])
    .where(isOpenPart())
    .where('purpose', '<>', 'preview')
    .where((eb) => eb.or([asked, eb('createdAt', '<=', tx.now - longestWaitMs)]))
    // By the case, not by a column of that name.
    .groupBy(sql`1`)
    .execute();
  const of = (isAsked: number) => Number(rows.find((row) => Number(row.isAsked) === isAsked)?.count ?? 0);
  return { asked: of(1), late: of(0) };
}
