import { sql } from 'kysely';
import { longestWaitMs } from '#channel-kit/remote-number.ts';
import type { StepTx, StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import {
  isFetchingItem,
  isOpenItem,
  isOpenPart,
  isOpenTask,
  isOutOfBudget,
  isUnnotifiedItem,
  isUnsettledTask,
  isUnshownTask,
} from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { readRow } from '../base/row-access.ts';
import { archiveChild, type Child, lockLineage, readChild, statusOfEnd } from '../children/child.ts';
import { readFullClasses } from '../children/class-room.ts';
import { finishChild } from '../children/finish-child.ts';
import { cancelItemsOf, hasWorkBelow, statusOfStop, stopBranch } from '../children/stop-tree.ts';
import { rememberContext } from '../rows/group-context.ts';
import { dropHeld } from '../rows/item.ts';
import { type Lane, lockLanes } from '../rows/lane.ts';
import { readTasksToTend, type TasksToTend } from '../tasks/tasks-to-tend.ts';
import { type RunOutOfBudget, readRunsWithRoom, type WaitPlace } from '../waits/budget-waits.ts';
import { giveUpRun } from './end-run.ts';

/** Findings of one scan: what is due, by lane and by conversation. */
export type Sweep = TasksToTend & {
  /** The database's clock, ms since the epoch. */
  readonly now: number;
  readonly lanes: readonly {
    readonly laneKey: string;
    readonly class: string;
    readonly waitingSince: number;
    /** Its run no longer has a holder. */
    readonly isAbandoned: boolean;
  }[];
  readonly conversations: readonly string[];
  readonly expiredBundles: readonly string[];
  /** Items for `makeDue`. */
  readonly ahead: readonly string[];
  readonly fetches: readonly string[];
  /** Sub-agents for `sweepChild`. */
  readonly children: readonly string[];
  /** Runs whose budgets have room for them again. */
  readonly withRoom: readonly RunOutOfBudget[];
  /** Where the next sweep continues; undefined if this one reached the end of everything due. */
  readonly next: SweepPlace | undefined;
};

/** How far the sweep has got with each kind of row that may exceed a page. */
export type SweepPlace = {
  readonly item: PageEnd<Pick<DueItem, 'dueAt' | 'laneKey'>>;
  readonly lane: PageEnd<Pick<UnfinishedLane, 'leaseUntil' | 'key'>>;
  readonly conversation: PageEnd<{ readonly conversationKey: string }>;
  readonly run: PageEnd<WaitPlace>;
};

/** The last row read, or the end of all rows: then the first page is read again until the other kinds are done too. */
type PageEnd<Row> = Row | 'end';

/** How many rows of each kind are read at a time, so that the cost doesn't grow with the backlog. */
const page = 500;

/**
 * Step 11: finds everything that should be moving but isn't, the longest wait first. Sufficient for correctness on its
 * own; wakes and notifications only add speed.
 */
export const readSweep: StoreQuery<
  {
    readonly now?: number;
    readonly after?: SweepPlace | undefined;
    /** As in `ClaimInput`: lanes of a class at its cap are left out, since none of them could be claimed. */
    readonly caps?: Readonly<Partial<Record<string, number>>> | undefined;
  },
  Sweep
> = {
  query: 'readSweep',
  usesClock: true,
  run: async (tx, { now = tx.now, after, caps = {} }) => {
    const due = await dueItems.all(tx, { now, ...from(after?.item, { dueAt: -1, laneKey: '' }) });
    const unfinished = await unfinishedLanes.all(tx, {
      now,
      ...from(after?.lane, { leaseUntil: -1, key: '' }),
    });
    const { conversationKey } = from(after?.conversation, { conversationKey: '' });
    const open = await openConversations.all(tx, { after: conversationKey, now, later: now + longestWaitMs });
    const waits = await readRunsWithRoom(tx, from(after?.run, undefined));
    const fetching = await fetchingItems.all(tx, {});
    const ahead = await itemsAhead.all(tx, { now, later: now + clockSlackMs });
    const children = await childrenToTend.all(tx, { now, archiveBefore: now - archiveAfterMs });
    const waiting = new Map<string, DueItem>();
    // A lane with a run is found by its run, which is what its next holder continues.
    const isFree = (row: DueItem) => row.runId === null && row.leaseUntil <= now;
    for (const row of due)
      if (row.state === 'waiting' && isFree(row) && !waiting.has(row.laneKey)) waiting.set(row.laneKey, row);
    const expired = due.filter((row) => row.state === 'held').map((row) => row.laneKey);
    const lanes = [
      ...[...waiting.values()].map((row) => ({
        laneKey: row.laneKey,
        class: row.class,
        waitingSince: row.dueAt,
        isAbandoned: false,
      })),
      ...unfinished.map((row) => ({
        laneKey: row.key,
        class: row.class,
        waitingSince: row.leaseUntil,
        isAbandoned: true,
      })),
    ];
    const classes = lanes.map((lane) => lane.class);
    const full = await readFullClasses(tx, classes, caps);
    return {
      now,
      lanes: lanes.filter((lane) => !full.has(lane.class)),
      conversations: open.filter((row) => Number(row.isDue) === 1).map((row) => row.conversationKey),
      expiredBundles: [...new Set(expired)],
      ahead: ahead.map((row) => row.id),
      fetches: fetching.map((row) => row.id),
      children: children.map((row) => row.id),
      ...(await readTasksToTend(tx, page)),
      withRoom: waits.ready,
      next: ongoing({
        item: reached(after?.item, lastOf(due)),
        lane: reached(after?.lane, lastOf(unfinished)),
        conversation: reached(after?.conversation, lastOf(open)),
        run: reached(after?.run, waits.next),
      }),
    };
  },
};

function from<Row, First>(before: PageEnd<Row> | undefined, first: First): Row | First {
  return before === undefined || before === 'end' ? first : before;
}

/** Returns the last row of a full page, which may have a next page. */
function lastOf<Row>(rows: readonly Row[]): Row | undefined {
  return rows.length < page ? undefined : rows.at(-1);
}

function reached<Row>(before: PageEnd<Row> | undefined, last: Row | undefined): PageEnd<Row> {
  return before === 'end' || last === undefined ? 'end' : last;
}

function ongoing(place: SweepPlace): SweepPlace | undefined {
  return Object.values(place).every((each) => each === 'end') ? undefined : place;
}

type DueItem = {
  readonly laneKey: string;
  readonly dueAt: number;
  readonly state: string;
  readonly class: string;
  readonly leaseUntil: number;
  readonly runId: string | null;
};

const dueItems = prepared((db, of: QueryParams<{ now: number; dueAt: number; laneKey: string }>) =>
  db
    .selectFrom(
      db
        .selectFrom('inbox')
        .select(['laneKey', 'dueAt', 'state'])
        .where(isOpenItem())
        .where('dueAt', '<=', of.now)
        .where(sql<boolean>`("dueAt", "laneKey") > (${of.dueAt}, ${of.laneKey})`)
        .orderBy('dueAt')
        .orderBy('laneKey')
        .limit(sql.lit(page))
        .as('due'),
    )
    .innerJoin('lanes', 'lanes.key', 'due.laneKey')
    .select(['due.laneKey', 'due.dueAt', 'due.state', 'lanes.class', 'lanes.leaseUntil', 'lanes.runId'])
    .orderBy('due.dueAt')
    .orderBy('due.laneKey'),
);

type UnfinishedLane = { readonly key: string; readonly class: string; readonly leaseUntil: number };

const unfinishedLanes = prepared((db, of: QueryParams<{ now: number; leaseUntil: number; key: string }>) =>
  db
    .selectFrom('lanes')
    .select(['key', 'class', 'leaseUntil'])
    .where('runId', 'is not', null)
    .where('leaseUntil', '<=', of.now)
    .where(sql<boolean>`("leaseUntil", "key") > (${of.leaseUntil}, ${of.key})`)
    .orderBy('leaseUntil')
    .orderBy('key')
    .limit(sql.lit(page)),
);

/** The clocks of processes on one machine, or using one database, differ by less. */
const clockSlackMs = 1_000;

/** Items stored by a clock that has since been set back. */
const itemsAhead = prepared((db, of: QueryParams<{ now: number; later: number }>) =>
  db
    .selectFrom('inbox')
    .select('id')
    .where(isOpenItem())
    .where('dueAt', '>', of.now)
    .where('createdAt', '>', of.later)
    .limit(sql.lit(page)),
);

/**
 * Makes items due that were stored by a clock ahead of this one, along with everything else that waits in their lanes.
 * Otherwise they would be due too late by the clocks' difference, and nothing can pass them. Repeating it changes
 * nothing.
 */
export const makeDue: StoreCommand<{ readonly ids: readonly string[] }, void> = {
  name: 'makeDue',
  run: async (tx, { ids }) => {
    await tx.db
      .updateTable('inbox')
      .set({ dueAt: tx.now })
      // Their arrival may have postponed the items that were already waiting.
      .where('laneKey', 'in', (eb) =>
        eb.selectFrom('inbox as ahead').select('ahead.laneKey').where('ahead.id', 'in', ids),
      )
      .where((eb) => eb.or([eb('id', 'in', ids), eb('state', '=', 'waiting')]))
      .where(isOpenItem())
      .where('dueAt', '>', tx.now)
      .execute();
  },
};

const fetchingItems = prepared((db) =>
  db.selectFrom('inbox').select('id').where(isFetchingItem()).limit(sql.lit(page)),
);

/** Sub-agents that are past their deadline, idle but not ended, or ended long ago. */
const childrenToTend = prepared((db, of: QueryParams<{ now: number; archiveBefore: number }>) =>
  db
    .selectFrom('children')
    .innerJoin('lanes', 'lanes.key', 'children.laneKey')
    .select('children.id')
    .where('children.state', 'in', ['queued', 'running'])
    .where('children.endedAt', 'is', null)
    .where((eb) =>
      eb.or([
        eb('children.stopAt', '<=', of.now),
        eb.and([eb('children.stopAt', 'is', null), eb('children.deadlineAt', '<=', of.now)]),
        eb.and([
          eb('lanes.runId', 'is', null),
          eb.not(
            eb.exists(
              eb
                .selectFrom('inbox')
                .select('inbox.id')
                .whereRef('inbox.laneKey', '=', 'children.laneKey')
                .where(isOpenItem()),
            ),
          ),
          eb.not(
            eb.exists(
              eb
                .selectFrom('children as below')
                .select('below.id')
                .whereRef('below.parentSessionId', '=', 'children.id')
                .where('below.endedAt', 'is', null),
            ),
          ),
          eb.not(
            eb.exists(
              eb
                .selectFrom('tasks')
                .select('tasks.id')
                .whereRef('tasks.sessionId', '=', 'children.id')
                .where(isOpenTask()),
            ),
          ),
        ]),
      ]),
    )
    .unionAll(
      db
        .selectFrom('children')
        .select('children.id')
        .where('archivedAt', 'is', null)
        .where('endedAt', '<=', of.archiveBefore),
    )
    .limit(sql.lit(page)),
);

type DeliveryPage = { after: string; now: number; later: number };

/**
 * Conversations with parts to deliver, by key, each found by skipping past the previous one: reading all their parts
 * would take longer the more of them wait, as during a network outage. A part that seems due only after `later` was
 * stored by a clock that has since been set back, and is due now.
 */
const openConversations = prepared(
  (_, of: QueryParams<DeliveryPage>) => sql<{ conversationKey: string; isDue: number }>`
    with recursive found("conversationKey", place) as (
      select min("conversationKey"), 1 from outbox
      where ${isOpenPart()} and "conversationKey" > ${of.after}
      union all
      select (
        select min("conversationKey") from outbox
        where ${isOpenPart()} and "conversationKey" > found."conversationKey"
      ), place + 1
      from found where found."conversationKey" is not null and place < ${sql.lit(page)}
    )
    select found."conversationKey",
      case when "deliveryUntil" <= ${of.now} and exists (
        select 1 from outbox
        where ${isOpenPart()} and outbox."conversationKey" = found."conversationKey"
          and (outbox."dueAt" <= ${of.now} or outbox."dueAt" > ${of.later})
      ) then 1 else 0 end as "isDue"
    from found join conversations on conversations.key = found."conversationKey"`,
);

/**
 * Reads when something becomes due without another commit, ms since the epoch; undefined if nothing does. Work that
 * can't be dated, such as a part to deliver, is due since 0. Ask when a sweep has found nothing.
 */
export const readNextDue: StoreQuery<Record<never, never>, number | undefined> = {
  query: 'readNextDue',
  run: async (tx) => {
    const times = await dueTimes.all(tx, { archiveAfterMs });
    return times[0]?.dueAt ?? undefined;
  },
};

const dueTimes = prepared(
  (_, of: QueryParams<{ archiveAfterMs: number }>) => sql<{ dueAt: number | null }>`
    select min("dueAt") as "dueAt" from (
      select min("dueAt") as "dueAt" from inbox where ${isOpenItem()}
      union all select min("leaseUntil") from lanes where "runId" is not null
      union all select min(coalesce("endedAt" + ${of.archiveAfterMs}, "stopAt", "deadlineAt"))
        from children where "archivedAt" is null
      union all select 0 where exists (select 1 from inbox where ${isUnnotifiedItem()})
      union all select 0 where exists (select 1 from outbox where ${isOpenPart()})
      union all select 0 where exists (select 1 from runs where ${isOutOfBudget()})
      union all select 0 where exists (select 1 from tasks where ${isUnsettledTask()})
      union all select 0 where exists (select 1 from tasks where ${isUnshownTask()})
    ) as times`,
);

/** Says whether any process works a lane other than a background one. */
export const readIsWorked: StoreQuery<Record<never, never>, boolean> = {
  query: 'readIsWorked',
  usesClock: true,
  run: async (tx) => (await workedLane.first(tx, { now: tx.now })) !== undefined,
};

const workedLane = prepared((db, of: QueryParams<{ now: number }>) =>
  db
    .selectFrom('lanes')
    .select('key')
    .where('runId', 'is not', null)
    .where('leaseUntil', '>', of.now)
    // A parked lane has no holder.
    .where('holder', 'is not', null)
    .where('class', '<>', 'background')
    .limit(1),
);

/** Turns bundles into context, like any unmentioned message, if no part of them passed the mention gate in time. */
export const closeBundles: StoreCommand<
  { readonly laneKeys: readonly string[]; readonly limit: number },
  void
> = {
  name: 'closeBundles',
  run: async (tx, { laneKeys, limit }) => {
    await lockLanes(tx, laneKeys);
    for (const laneKey of laneKeys) {
      const rows = await tx.db
        .selectFrom('inbox')
        .selectAll()
        .where('laneKey', '=', laneKey)
        .where(isOpenItem())
        .where('state', '=', 'held')
        .where('dueAt', '<=', tx.now)
        .execute();
      // Sorted here, since ordering them in the database would read the lane's complete history.
      for (const row of rows.toSorted((a, b) => a.seq - b.seq)) {
        await rememberContext(tx, {
          laneKey,
          conversationKey: row.conversationKey,
          messageId: row.messageId ?? undefined,
          content: json.content(row.content),
          limit,
        });
        await dropHeld(tx, row.id);
      }
    }
  },
};

/** How long a child stays in the lists of recent ones after its end, ms. */
const archiveAfterMs = 60 * 60_000;

/**
 * Applies a child's time limits: stops it past its deadline, fences it if it was asked to stop and hasn't, ends it when
 * it has nothing left to do, and archives it long after its end. Safe to repeat.
 */
export const sweepChild: StoreCommand<{ readonly childId: string }, Effects> = {
  name: 'sweepChild',
  run: async (tx, { childId }) => {
    const effects = noEffects();
    const seen = await readChild(tx, childId);
    const lane = seen && (await lockLineage(tx, seen.laneKey));
    const child = lane && (await readChild(tx, childId));
    if (!child) return effects;
    if (child.endedAt !== null) {
      if (child.endedAt + archiveAfterMs <= tx.now) await archiveChild(tx, childId);
    } else if (child.stopAt !== null) {
      if (child.stopAt <= tx.now) return fence(tx, lane, child);
    } else if (child.deadlineAt <= tx.now) {
      await stopBranch(tx, child, 'timeout', effects);
    } else if (await isAtRest(tx, lane, child)) {
      await finishChild(tx, child, { status: await statusOfRest(tx, child) }, effects);
    }
    return effects;
  },
};

/** Ends the child's run from the store's point of view, whatever its holder still does. */
async function fence(tx: StepTx, lane: Lane, child: Child): Promise<Effects> {
  if (lane.runId !== null) {
    const { taskItem } = await readRow(tx, 'runs', lane.runId, ['taskItem']);
    const run = { id: lane.runId, route: null, taskItem };
    return giveUpRun(tx, { ...lane, epoch: lane.epoch + 1 }, { run, text: '', ...stoppedLate });
  }
  const effects = noEffects();
  await cancelItemsOf(tx, lane.key);
  await finishChild(tx, child, { status: statusOfStop(child.stopReason) }, effects);
  return effects;
}

const stoppedLate = { endReason: 'stop', detail: 'it was asked to stop but did not do so in time' } as const;

/** Says whether the child has nothing left to do: no run, no waiting items and no children. */
async function isAtRest(tx: Tx, lane: Lane, child: Child): Promise<boolean> {
  if (lane.runId !== null) return false;
  const waiting = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('laneKey', '=', lane.key)
    .where(isOpenItem())
    .limit(1)
    .executeTakeFirst();
  return waiting === undefined && !(await hasWorkBelow(tx, child.id));
}

/** Returns the status of its last run; a child that never had one is lost. */
async function statusOfRest(tx: Tx, child: Child) {
  const run = await tx.db
    .selectFrom('inbox')
    .innerJoin('runs', 'runs.id', 'inbox.runId')
    .select('runs.endReason')
    .where('inbox.laneKey', '=', child.laneKey)
    .where('inbox.runId', 'is not', null)
    .orderBy('runs.startedAt', 'desc')
    .executeTakeFirst();
  return run ? statusOfEnd(run.endReason) : 'lost';
}
