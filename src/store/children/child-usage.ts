import { sql } from 'kysely';
import type { ChildUsage } from '#contracts/child.ts';
import type { Tx } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';

/**
 * Sums the model calls so far of all runs in the child's lane. The cost of its own children isn't included; it is
 * charged to the sessions above them as they end.
 */
export function readChildUsage(tx: Tx, laneKey: string): Promise<ChildUsage> {
  return usageOf.one(tx, { laneKey });
}

const usageOf = prepared(
  (_, of: QueryParams<{ laneKey: string }>) => sql<ChildUsage>`
    select cast(coalesce(sum("inputTokens" + "cacheReadTokens" + "cacheWriteTokens"), 0) as bigint) as "promptTokens",
      cast(coalesce(sum("outputTokens"), 0) as bigint) as "completionTokens",
      cast(coalesce(sum(cost), 0) as bigint) as cost
    from "modelCalls"
    where "runId" in (select "runId" from inbox where "laneKey" = ${of.laneKey} and "runId" is not null)`,
);
