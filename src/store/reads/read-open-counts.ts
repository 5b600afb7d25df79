import { type RawBuilder, sql } from 'kysely';
import { longestWaitMs } from '#channel-kit/remote-number.ts';
import type { TaskState } from '#contracts/task.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import {
  isOpenApproval,
  isOpenCallApproval,
  isOpenItem,
  isOpenPart,
  isOpenTask,
} from '../base/index-predicates.ts';

/** Counts of open work. The cost depends on the number of open rows, not on the history. */
export type OpenCounts = {
  /** Inbox rows by state, including corrections and commands that wait in a lane's order. */
  readonly items: { readonly held: number; readonly waiting: number };
  /** When the longest-waiting message arrived, ms since the epoch. */
  readonly oldestWaitingSince: number | undefined;
  readonly lanes: {
    /** Lanes whose run a process is executing. */
    readonly active: number;
    /** Lanes whose run waits for an outside result, without a slot or a holder. */
    readonly parked: number;
    /** Lanes whose run is unfinished and has no holder: the sweep brings it to a worker. */
    readonly unheld: number;
    /** Lanes in which an item waits for a later time. */
    readonly armed: number;
    /** Lanes in which an item is due but no run has begun yet. */
    readonly due: number;
  };
  /** Outbox parts still to be delivered. */
  readonly parts: {
    readonly pending: number;
    readonly sending: number;
    /** When the oldest part was stored, ms since the epoch. */
    readonly oldestSince: number | undefined;
    /** Parts that the platform has made wait for five minutes or asks to wait longer, and all parts after those. */
    readonly asked: number;
    /** Other parts that were stored more than five minutes ago. */
    readonly late: number;
  };
  readonly children: readonly LiveChildren[];
  /** Live children whose end nobody would learn of. */
  readonly orphans: number;
  /** How many open tasks are in each state. */
  readonly tasks: Readonly<Partial<Record<TaskState, number>>>;
  /** Open tasks and subtasks that nothing works on, or will. */
  readonly lost: { readonly tasks: number; readonly subtasks: number };
  /** Open questions that nothing will end: past their time, or of a run that doesn't wait for them. */
  readonly lostQuestions: number;
  /** Files of messages that runs have taken without an end for the file. */
  readonly lostFiles: number;
  /** Time by the database's clock, or by this process's clock for SQLite. */
  readonly now: number;
};

/** Counts all open work, for `/metrics`. */
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
      tasks: await countOpenTasks(tx),
      lost: await countLostTasks(tx),
      lostQuestions: await countLostQuestions(tx),
      lostFiles: await countLostFiles(tx),
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
    // By the case expression, not by a column with that name.
    .groupBy(sql`1`)
    .execute();
  const of = (state: string) => Number(rows.find((row) => row.state === state)?.count ?? 0);
  return { active: of('active'), parked: of('parked'), unheld: of('unheld') };
}

/** Counts lanes without a run in which an item waits: for a later time, or for a worker. */
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

/** Counts long-waiting parts. A part that its platform has delayed long, or asks to, holds up all parts after it. */
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
    // Nobody waits for a mark.
    .where('key', 'not like', '%:mark')
    .where((eb) => eb.or([asked, eb('createdAt', '<=', tx.now - longestWaitMs)]))
    // By the case expression, not by a column with that name.
    .groupBy(sql`1`)
    .execute();
  const of = (isAsked: number) => Number(rows.find((row) => Number(row.isAsked) === isAsked)?.count ?? 0);
  return { asked: of(1), late: of(0) };
}

/** Live sub-agents of one kind. */
type LiveChildren = {
  readonly state: 'queued' | 'running';
  readonly depth: number;
  readonly class: string;
  readonly count: number;
};

/** How long after its deadline a stopped child may still be live; the sweep runs once a second. */
const sweepGraceMs = 5_000;

/** Counts live children. Only their index is read, so the cost depends on how many are live. */
async function countLiveChildren(tx: Tx): Promise<readonly LiveChildren[]> {
  const rows = await tx.db
    .selectFrom('children')
    .select((eb) => ['state', 'depth', 'laneClass', eb.fn.countAll<number>().as('count')])
    .where('endedAt', 'is', null)
    .groupBy(['state', 'depth', 'laneClass'])
    .execute();
  return rows.flatMap(({ state, depth, laneClass, count }) =>
    state === 'done' ? [] : [{ state, depth, class: laneClass, count: Number(count) }],
  );
}

/**
 * Counts live children whose end nobody would learn of: the run at the top of their tree is over, and its lane is gone
 * or has another session now. Those that were asked to stop are left out until their deadline has passed.
 */
async function countOrphans(tx: Tx): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as "count" from "children" as "child"
      where "child"."endedAt" is null
        and coalesce("child"."stopAt", 0) <= ${tx.now - sweepGraceMs}
        and not exists (
          select 1 from "runs" where "runs"."id" = "child"."treeId" and "runs"."state" <> 'finished')
        and not exists (
          select 1 from "trees"
            join "sessions" on "sessions"."id" = "trees"."sessionId"
            join "lanes" on "lanes"."key" = "sessions"."key" and "lanes"."sessionId" = "sessions"."id"
            where "trees"."id" = "child"."treeId")`.execute(tx.db);
  return Number(rows[0]?.count ?? 0);
}

/** How long a question may be past its expiry; those whose run the sweep can't claim are ended every 5 s. */
const questionGraceMs = 30_000;

/** Counts questions for people that are open and shouldn't be. Only open ones are read. */
async function countLostQuestions(tx: Tx): Promise<number> {
  const late = tx.now - questionGraceMs;
  const { rows } = await sql<{ count: number }>`
    select (select count(*) from "approvals" where ${isOpenApproval()} and "expiresAt" <= ${late})
      + (select count(*) from "callApprovals" where ${isOpenCallApproval()} and ("expiresAt" <= ${late}
        or not exists (
          select 1 from "runs" where "runs"."id" = "callApprovals"."runId" and "runs"."state" = 'parked')))
      as "count"`.execute(tx.db);
  return Number(rows[0]?.count ?? 0);
}

/** Counts messages of unfinished runs with a file that is still being fetched or read: taking a message ends both. */
async function countLostFiles(tx: Tx): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as "count" from "lanes" join "inbox" on "inbox"."runId" = "lanes"."runId"
      where "lanes"."runId" is not null and "inbox"."state" = 'taken'
        and ("inbox"."isFetching" = 1 or "inbox"."content" like '%"reading":{"kind":"pending"}%')`.execute(
    tx.db,
  );
  return Number(rows[0]?.count ?? 0);
}

async function countOpenTasks(tx: Tx): Promise<OpenCounts['tasks']> {
  const rows = await tx.db
    .selectFrom('tasks')
    .select((eb) => ['state', eb.fn.countAll<number>().as('count')])
    .where(isOpenTask())
    .groupBy('state')
    .execute();
  return Object.fromEntries(rows.map(({ state, count }) => [state, Number(count)]));
}

/** How long nothing may have worked on a task, ms; the sweep, which settles it, runs once a second. */
const taskGraceMs = 30_000;

/**
 * Counts what of open tasks has stood still: a task whose own item and graph have ended, and a subtask whose worker has,
 * or that nobody dispatches. Only open tasks are read.
 */
async function countLostTasks(tx: Tx): Promise<OpenCounts['lost']> {
  const late = tx.now - taskGraceMs;
  const worksOn = (sourceKey: RawBuilder<unknown>) => sql`exists (
    select 1 from "inbox" left join "runs" on "runs"."id" = "inbox"."runId"
      where "inbox"."sourceKey" = ${sourceKey} and (${isOpenItem()}
        or ("inbox"."state" = 'taken' and "runs"."state" <> 'finished') or "runs"."endedAt" > ${late}))`;
  const has = (condition: RawBuilder<unknown>) => sql`exists (
    select 1 from "subtasks" as "other" where "other"."taskId" = "tasks"."id" and ${condition})`;
  const hasChanged = has(sql`("other"."startedAt" > ${late} or "other"."endedAt" > ${late})`);
  const item = sql`'task:' || "tasks"."id" || case "tasks"."state"
    when 'aggregating' then '::' || cast("tasks"."rounds" as text) else ':main' end`;
  const peer = sql`exists (select 1 from "children" where "children"."id" = "subtasks"."childId"
    and ("children"."endedAt" is null or "children"."endedAt" > ${late}))`;
  const own = sql`'task:' || "tasks"."id" || ':' || "subtasks"."id" || ':' || cast("subtasks"."tries" as text)`;
  const { rows } = await sql<{ tasks: number; subtasks: number }>`
    select (select count(*) from "tasks" where ${isOpenTask()} and "createdAt" <= ${late} and not ${hasChanged}
        and case when "state" = 'executing' then not ${has(sql`"other"."state" in ('pending', 'dispatched')`)}
          else not ${worksOn(item)} end) as "tasks",
      (select count(*) from "tasks" join "subtasks" on "subtasks"."taskId" = "tasks"."id"
        where ${isOpenTask()} and "tasks"."state" = 'executing' and "tasks"."createdAt" <= ${late} and not ${hasChanged}
          and case "subtasks"."state"
            when 'dispatched' then not case when "subtasks"."childId" is null then ${worksOn(own)} else ${peer} end
            when 'pending' then not ${has(sql`"other"."state" = 'dispatched'`)}
            else false end) as "subtasks"`.execute(tx.db);
  return { tasks: Number(rows[0]?.tasks ?? 0), subtasks: Number(rows[0]?.subtasks ?? 0) };
}
