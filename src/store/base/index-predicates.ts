import { type RawBuilder, type SqlBool, sql } from 'kysely';

/*
 * The conditions of the partial indexes, word for word. SQLite takes such an index only when the text of
 * the query implies its condition, and a bound value implies nothing: without these literals each step
 * would read the whole history of its lane, or of the table.
 */

/** Messages that nobody has taken; combine it with further conditions on the state. */
export function isOpenItem(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"inbox"."state" in ('held', 'waiting')`;
}

/** Waiting messages with a file still to fetch. */
export function isFetchingItem(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"inbox"."state" = 'waiting' and "inbox"."isFetching" = 1`;
}

/** Waiting messages whose senders were not told that they wait. */
export function isUnnotifiedItem(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"inbox"."state" = 'waiting' and "inbox"."notifiedAt" is null`;
}

/** Runs that wait for room in a budget. */
export function isOutOfBudget(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"runs"."budgetWait" is not null`;
}

/** Direct conversations in which a command was sent. */
export function hasCommand(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"conversations"."commandedAt" is not null`;
}

/** Parts that are still to be delivered; combine it with further conditions on the state. */
export function isOpenPart(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"outbox"."state" in ('pending', 'sending')`;
}

/** Parts of which nobody knows whether they arrived. */
export function isUnknownPart(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"outbox"."state" = 'unknown'`;
}

/** Parts that did not arrive. */
export function isFailedPart(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"outbox"."state" = 'failed'`;
}

/** Questions that nobody has decided. */
export function isOpenApproval(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"approvals"."state" = 'open'`;
}

/** Lanes that are held between two runs; combine it with `runId is null`. */
export function isReservedLane(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"lanes"."leaseUntil" > 0`;
}

/** Lanes of people: neither a sub-agent's nor Parley's own. */
export function isPeoplesLane(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"lanes"."class" = 'main'`;
}

/** Direct conversations of owners. */
export function isOwnersLane(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"lanes"."ownerAt" is not null`;
}

/** People whom an approval has made owners. */
export function isApprovedOwner(): RawBuilder<SqlBool> {
  return sql<SqlBool>`"people"."role" = 'owner'`;
}
