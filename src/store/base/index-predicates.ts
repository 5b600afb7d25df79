import { type RawBuilder, type SqlBool, sql } from 'kysely';

/*
 * The conditions of the partial indexes, word for word. SQLite uses such an index only if the text of the query implies
 * its condition, and a bound value implies nothing: without these literals each step would read the complete history of
 * its lane, or of the table.
 */

/** Matches items that no run has taken; combine it with further conditions on the state. */
export function isOpenItem(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"inbox"."state" in ('held', 'waiting')`;
}

/** Matches waiting messages with a file still to fetch. */
export function isFetchingItem(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"inbox"."state" = 'waiting' and "inbox"."isFetching" = 1`;
}

/** Matches waiting messages whose senders haven't been notified of the wait. */
export function isUnnotifiedItem(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"inbox"."state" = 'waiting' and "inbox"."notifiedAt" is null`;
}

/** Matches runs that wait for room in a budget. */
export function isOutOfBudget(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"runs"."budgetWait" is not null`;
}

/** Matches direct conversations in which a command was sent. */
export function hasCommand(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"conversations"."commandedAt" is not null`;
}

/** Matches parts that are still to be delivered; combine it with further conditions on the state. */
export function isOpenPart(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"outbox"."state" in ('pending', 'sending')`;
}

/** Matches parts that may or may not have arrived. */
export function isUnknownPart(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"outbox"."state" = 'unknown'`;
}

/** Matches parts that didn't arrive. */
export function isFailedPart(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"outbox"."state" = 'failed'`;
}

/** Matches undecided questions. */
export function isOpenApproval(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"approvals"."state" = 'open'`;
}

/** Matches undecided questions about calls. */
export function isOpenCallApproval(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"callApprovals"."state" = 'open'`;
}

/** Matches grants that nobody has revoked. */
export function isUnrevokedGrant(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"grants"."endedAt" is null`;
}

/** Matches lanes that are held between two runs; combine it with `runId is null`. */
export function isReservedLane(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"lanes"."leaseUntil" > 0`;
}

/** Matches people's lanes, not those of sub-agents or Parley's own. */
export function isPeoplesLane(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"lanes"."class" = 'main'`;
}

/** Matches direct conversations of owners. */
export function isOwnersLane(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"lanes"."ownerAt" is not null`;
}

/** Matches people whom an approval has made owners. */
export function isApprovedOwner(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"people"."role" = 'owner'`;
}

/** Matches tasks that haven't ended. */
export function isOpenTask(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"tasks"."endedAt" is null`;
}

/** Matches tasks of which a step has left something to dispatch or to stop. */
export function isUnsettledTask(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"tasks"."isUnsettled" = 1`;
}

/** Matches tasks whose files are older than the task. */
export function isUnshownTask(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"tasks"."isUnshown" = 1`;
}
