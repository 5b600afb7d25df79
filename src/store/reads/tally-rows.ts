/**
 * Counts rows that are kept forever, slice by slice. On SQLite, whose reads run on the event loop, a slice is a range
 * of row ids; PostgreSQL counts in its own process, so its only slice is the complete table.
 */
import { type RawBuilder, sql } from 'kysely';
import type { StoreQuery, Tx } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';

/** Tables that are counted. */
export type TalliedTable =
  | 'messages'
  | 'items'
  | 'missing'
  | 'runs'
  | 'parts'
  | 'children'
  | 'tasks'
  | 'subtasks';

export type SliceRequest = {
  readonly of: TalliedTable;
  /** The last row id of the previous slice; 0 for the first. */
  readonly after: number;
  readonly size: number;
};

/** Counts of one slice of a table. */
export type Slice = {
  /**
   * How many rows are in each place. Messages: `held`, `waiting`, `taken`, `provisional` (answered, but parts of the
   * answer are still to be delivered), `ended:<outcome>` or `lost`. Items and missing items: the same and their source,
   * such as `waiting@api`. Runs: their end reason, or `active`. Parts: their
   * state. Children: `live`, or their status and depth, such as `completed:1`. Tasks and subtasks: `live` while the task is
   * open, then their state, or `lost`.
   */
  readonly places: Readonly<Record<string, number>>;
  /** When its newest row was created, ms since the epoch. */
  readonly newestAt: number;
  /** Where the next slice begins; undefined if this was the last one. */
  readonly next: number | undefined;
};

/** Counts one slice of a table, so that no read takes long. */
export const tallyRows: StoreQuery<SliceRequest, Slice> = {
  query: 'tallyRows',
  run: async (tx, { of, after, size }) => {
    const upTo = after + size;
    const slice = tx.dialect === 'sqlite' ? sql`and "of".rowid > ${after} and "of".rowid <= ${upTo}` : sql``;
    const { rows } = await statements[of](slice).execute(tx.db);
    const places: Record<string, number> = {};
    let newestAt = 0;
    for (const row of rows) {
      places[row.place] = (places[row.place] ?? 0) + Number(row.count);
      newestAt = Math.max(newestAt, Number(row.newest));
    }
    const isLast = tx.dialect === 'postgres' || (await lastRow(tx, of)) <= upTo;
    return { places, newestAt, next: isLast ? undefined : upTo };
  },
};

type TallyRow = { readonly place: string; readonly count: number; readonly newest: number };
type Statement = (slice: RawBuilder<unknown>) => RawBuilder<TallyRow>;

/**
 * The conservation law as an SQL expression. Each accepted event is in exactly one place: its row waits, is held for
 * the rest of its bundle, is taken by an unfinished run, or has ended with an outcome. Everything else is lost: a
 * missing row, an end without an outcome, or a run that ended without the message.
 */
const place = sql`case
  when "inbox"."id" is null then 'lost'
  when "inbox"."state" in ('held', 'waiting') then "inbox"."state"
  when "inbox"."state" = 'taken' and "runs"."state" <> 'finished' then 'taken'
  when "inbox"."state" = 'ended' and "inbox"."outcome" = 'answered' and "inbox"."answer" in (
    select "answer" from "outbox" where ${isOpenPart()} and "purpose" = 'reply') then 'provisional'
  when "inbox"."state" = 'ended' and "inbox"."outcome" is not null then 'ended:' || "inbox"."outcome"
  else 'lost' end`;

/** The first half finds rows by their ids. A part of a bundle whose gate is undecided is found by its message. */
const messages: Statement = (slice) => sql<TallyRow>`
  select ${place} as "place", count(*) as "count", max("of"."at") as "newest"
    from "ledger" as "of"
    left join "inbox" on "inbox"."id" = "of"."inboxId"
    left join "runs" on "runs"."id" = "inbox"."runId"
    where "of"."outcome" = 'accepted' ${slice} group by 1
  union all
  select ${place}, count(*), max("of"."at")
    from "ledger" as "of"
    left join "inbox" on "inbox"."messageId" = "of"."messageId"
      and "inbox"."conversationKey" = "of"."conversationKey"
    left join "runs" on "runs"."id" = "inbox"."runId"
    where "of"."outcome" = 'held' ${slice} group by 1`;

/** Messages of programs and sub-agents, and Parley's own tasks, which no platform event has brought. */
const items: Statement = (slice) => sql<TallyRow>`
  select ${place} || '@' || "inbox"."source" as "place", count(*) as "count", max("of"."createdAt") as "newest"
    from "inbox" as "of" join "inbox" on "inbox"."id" = "of"."id"
    left join "runs" on "runs"."id" = "inbox"."runId"
    where "of"."source" <> 'platform' ${slice} group by 1`;

/** Tasks of live sub-agents, and results that their parents were told, whose items are gone. */
const missing: Statement = (slice) => sql<TallyRow>`
  select 'lost@child' as "place", count(*) as "count", max("of"."createdAt") as "newest"
    from "children" as "of"
    where ("of"."endedAt" is null or "of"."told" = 'lane') and not exists (
        select 1 from "inbox" where "inbox"."sourceKey" =
          case when "of"."endedAt" is null then 'spawn:' else 'child:' end || "of"."id") ${slice}
    having count(*) > 0`;

const runs: Statement = (slice) => sql<TallyRow>`
  select case when "of"."state" <> 'finished' then 'active' else coalesce("of"."endReason", 'unknown') end
      as "place", count(*) as "count", max("of"."startedAt") as "newest"
    from "runs" as "of" where true ${slice} group by 1`;

/** Previews aren't separate messages: the answer takes them over. */
const parts: Statement = (slice) => sql<TallyRow>`
  select "of"."state" as "place", count(*) as "count", max("of"."createdAt") as "newest"
    from "outbox" as "of" where "of"."purpose" <> 'preview' ${slice} group by 1`;

const children: Statement = (slice) => sql<TallyRow>`
  select case when "of"."endedAt" is null then 'live'
      else coalesce("of"."status", 'unknown') || ':' || cast("of"."depth" as text) end as "place",
      count(*) as "count", max("of"."createdAt") as "newest"
    from "children" as "of" where true ${slice} group by 1`;

/** A task that has ended without a state or without anybody told is lost. */
const tasks: Statement = (slice) => sql<TallyRow>`
  select case when "of"."endedAt" is null then 'live'
      when "of"."state" in ('done', 'failed') and "of"."told" is not null then "of"."state"
      else 'lost' end as "place",
      count(*) as "count", max("of"."createdAt") as "newest"
    from "tasks" as "of" where true ${slice} group by 1`;

/** So is a subtask that is open although its task has ended. */
const subtasks: Statement = (slice) => sql<TallyRow>`
  select case when "tasks"."endedAt" is null then 'live'
      when "of"."state" in ('done', 'failed', 'skipped') and "of"."endedAt" is not null then "of"."state"
      else 'lost' end as "place",
      count(*) as "count", max("tasks"."createdAt") as "newest"
    from "subtasks" as "of" join "tasks" on "tasks"."id" = "of"."taskId" where true ${slice} group by 1`;

const statements: Readonly<Record<TalliedTable, Statement>> = {
  messages,
  items,
  missing,
  runs,
  parts,
  children,
  tasks,
  subtasks,
};

const tables = {
  messages: 'ledger',
  items: 'inbox',
  missing: 'children',
  runs: 'runs',
  parts: 'outbox',
  children: 'children',
  tasks: 'tasks',
  subtasks: 'subtasks',
} as const;

async function lastRow(tx: Tx, of: TalliedTable): Promise<number> {
  const { rows } = await sql<{ last: number | null }>`
    select max(rowid) as "last" from ${sql.table(tables[of])}`.execute(tx.db);
  return Number(rows[0]?.last ?? 0);
}
