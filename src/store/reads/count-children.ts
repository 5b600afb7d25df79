import { sql } from 'kysely';
import type { Tx } from '../base/command.ts';

/** Live sub-agents of one kind. */
export type LiveChildren = {
  readonly state: 'queued' | 'running';
  readonly depth: number;
  readonly class: string;
  readonly count: number;
};

/** How long after its deadline a stopped child may still be live; the sweep runs once a second. */
const sweepGraceMs = 5_000;

/** Counts live children. Only their index is read, so the cost depends on how many are live. */
export async function countLiveChildren(tx: Tx): Promise<readonly LiveChildren[]> {
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
export async function countOrphans(tx: Tx): Promise<number> {
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
