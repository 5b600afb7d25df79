import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { CommandPlace, StepTx, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { isOpenItem, isOpenTask } from '../base/index-predicates.ts';
import { lockBelow, stopTree } from '../children/stop-tree.ts';
import { reviveSummary } from '../items/overflow.ts';
import { dropRetained } from '../items/retained-steers.ts';
import { lockAccounts } from '../processes/accounts.ts';
import { endItems, endSummaries } from '../rows/item.ts';
import { type Lane, lockAndReadLanes, lockOrMakeLanes } from '../rows/lane.ts';
import { cancelRun } from '../waits/parked.ts';
import { decideApproval } from './decide-approval.ts';
import type { Decider } from './sender-roles.ts';

export type RevokeResult = {
  /** How many approvals ended: one per bot account. */
  readonly people: number;
  /** How many requests were refused. */
  readonly requests: number;
  /** Runs and sub-agents to stop, and the conversations where a question about the person has now been decided. */
  readonly effects: Effects;
};

export type Revocation = {
  /** `channel:peer`. */
  readonly ref: string;
  readonly by: Decider;
};

/** The work that a revocation ends, and the accounts on which the person is approved or pending; all are locked. */
export type RevokedAccess = PeopleAtWork & { readonly accounts: readonly string[] };

/** Acquires all locks of a revocation except those of conversations, including the command's own `place`. */
export async function lockRevocation(tx: Tx, ref: string, place?: CommandPlace): Promise<RevokedAccess> {
  const accounts = await accountsOf(tx, ref);
  await lockAccounts(tx, [...new Set([...accounts, ...(place ? [place.account] : [])])]);
  const people = tx.db.selectFrom('people').select(['account', 'peerId']).where('ref', '=', ref);
  const found = (await people.execute()).filter(({ account }) => accounts.includes(account));
  const work = await findWorkOf(tx, found);
  await lockOrMakeLanes(tx, [...work.laneKeys.map((key) => ({ key })), ...(place ? [place.lane] : [])]);
  await lockWorkBelow(tx, found);
  return { ...work, accounts };
}

/**
 * Revokes the approval of `channel:peer` on every bot account, and refuses their requests. In the same transaction,
 * their waiting messages end as refused, and runs and sub-agents working for them are stopped. Because it holds the
 * accounts' rows, nothing they send afterwards is accepted. A concurrent approval on another account counts as made
 * after this. Repeating it changes nothing.
 */
export async function revokeAccess(
  tx: StepTx,
  { ref, by }: Revocation,
  revoked?: RevokedAccess,
): Promise<RevokeResult> {
  const { accounts, ...work } = revoked ?? (await lockRevocation(tx, ref));
  const effects = noEffects();
  if (accounts.length === 0) return { people: 0, requests: 0, effects };
  const people = tx.db.deleteFrom('people').where('ref', '=', ref).where('account', 'in', accounts);
  const { numDeletedRows } = await people.executeTakeFirstOrThrow();
  // Before the requests: lanes are locked before conversations.
  await endWorkOf(tx, work, effects);
  const requests = await tx.db
    .selectFrom('pairings')
    .select('id')
    .where('ref', '=', ref)
    .where('account', 'in', accounts)
    .where('codeHash', 'is not', null)
    .execute();
  for (const { id } of requests) await decideApproval(tx, { id, verdict: 'deny', by }, effects);
  return { people: Number(numDeletedRows), requests: requests.length, effects };
}

async function accountsOf(tx: Tx, ref: string): Promise<readonly string[]> {
  const rows = await tx.db
    .selectFrom('people')
    .select('account')
    .where('ref', '=', ref)
    .union(tx.db.selectFrom('pairings').select('account').where('ref', '=', ref))
    .orderBy('account')
    .execute();
  return rows.map((row) => row.account);
}

// Ends all work for people who may no longer write: their waiting messages, the runs that took one of them, and all
// work resulting from such a run: sub-agents, their announcements, the runs that report those, and the session's
// title.

/** A sender on one bot account. */
type Person = { readonly account: string; readonly peerId: string };

const revoked = { outcome: 'refused', outcomeReason: 'access-revoked' } as const;

/** People, and the keys of the conversations' lanes in which work for them is under way. */
type PeopleAtWork = { readonly people: readonly Person[]; readonly laneKeys: readonly string[] };

/** Finds their lanes. The caller must have locked their accounts' rows, so nothing more of theirs is accepted. */
async function findWorkOf(tx: Tx, people: readonly Person[]): Promise<PeopleAtWork> {
  return { people, laneKeys: people.length === 0 ? [] : await findLanes(tx, people) };
}

/** Locks the lanes of sub-agents that work for these people. The caller must have locked the lanes above them. */
async function lockWorkBelow(tx: Tx, people: readonly Person[]): Promise<void> {
  if (people.length === 0) return;
  const spawners = await findSpawners(tx, people);
  await lockBelow(tx, [...new Set(spawners.map(({ sessionId }) => sessionId))]);
}

/** Ends the work for these people. The caller must have locked their lanes, and then the sub-agents' lanes below. */
async function endWorkOf(tx: StepTx, { people, laneKeys }: PeopleAtWork, effects: Effects): Promise<void> {
  if (people.length === 0) return;
  const lanes = await lockAndReadLanes(tx, laneKeys);
  const spawners = await findSpawners(tx, people);
  await endWaiting(tx, people);
  for (const lane of lanes) {
    await endSummaries(tx, lane, { isTheirs: isOf(people), end: revoked });
    await reviveSummary(tx, lane.key, effects);
  }
  for (const { sessionId, runId } of spawners)
    await stopTree(tx, { sessionId, runIds: [runId], reason: 'stop' }, effects);
  for (const lane of lanes) await stopRun(tx, lane, { people, effects });
}

/**
 * Finds the conversations' lanes in which work for them is under way. A single query reads every kind of work, because
 * work that changes from one kind to another between two queries would be missed.
 */
async function findLanes(tx: Tx, people: readonly Person[]): Promise<readonly string[]> {
  const rows = await tx.db
    .selectFrom('inbox')
    .select('inbox.laneKey')
    .where(isOpenItem())
    .where(isFrom('inbox', people))
    .union(announcementsTo(tx, people).select('inbox.laneKey').where(isOpenItem()))
    .union(titlesFor(tx, people).select('inbox.laneKey').where(isOpenItem()))
    .union(
      tx.db
        .selectFrom('children')
        .select('children.parentLaneKey as laneKey')
        .where('children.endedAt', 'is', null)
        .where(hasTaken('children.treeId', people)),
    )
    .union(tasksFor(tx, people).select('tasks.laneKey'))
    .union(
      tx.db
        .selectFrom('lanes')
        .innerJoin('runs', 'runs.id', 'lanes.runId')
        .select('lanes.key as laneKey')
        .where('lanes.runId', 'is not', null)
        .where(isRunFor(people)),
    )
    .execute();
  // A sub-agent's key ends with that of its conversation, after the last `@`.
  return [...new Set(rows.map(({ laneKey }) => laneKey.slice(laneKey.lastIndexOf('@') + 1)))];
}

type Spawner = { readonly sessionId: string; readonly runId: string };

/** Finds the conversations' runs with live sub-agents or open tasks that work for these people. */
function findSpawners(tx: Tx, people: readonly Person[]): Promise<readonly Spawner[]> {
  return tx.db
    .selectFrom('children')
    .select(['children.parentSessionId as sessionId', 'children.parentRunId as runId'])
    .distinct()
    .where('children.endedAt', 'is', null)
    .where('children.depth', '=', 1)
    .where(hasTaken('children.treeId', people))
    .union(tasksFor(tx, people).select(['tasks.sessionId', 'tasks.runId']))
    .orderBy('sessionId')
    .orderBy('runId')
    .execute();
}

async function endWaiting(tx: Tx, people: readonly Person[]): Promise<void> {
  const theirs = await tx.db
    .selectFrom('inbox')
    .select(['inbox.id', 'inbox.state'])
    .where(isOpenItem())
    .where(isFrom('inbox', people))
    .execute();
  const announced = await announcementsTo(tx, people).select('inbox.id').where(isOpenItem()).execute();
  const titles = await titlesFor(tx, people).select('inbox.id').where(isOpenItem()).execute();
  const waiting = theirs.filter(({ state }) => state === 'waiting');
  await endItems(
    tx,
    [...waiting, ...announced, ...titles].map(({ id }) => id),
    revoked,
  );
  const held = theirs.filter(({ state }) => state === 'held').map(({ id }) => id);
  if (held.length === 0) return;
  // Held parts of a group's album wait for the others: if one of those addresses the agent, these count as a guest's.
  await tx.db.updateTable('inbox').set({ authority: 'guest' }).where('id', 'in', held).execute();
}

async function stopRun(
  tx: StepTx,
  lane: Lane,
  { people, effects }: { readonly people: readonly Person[]; readonly effects: Effects },
): Promise<void> {
  const { runId } = lane;
  if (runId === null) return;
  const run = tx.db.selectFrom('runs').select('runs.id').where('runs.id', '=', runId);
  if ((await run.where(isRunFor(people)).executeTakeFirst()) === undefined) return;
  const announced = await announcementsTo(tx, people)
    .select('inbox.id')
    .where('inbox.runId', '=', runId)
    .execute();
  const ids = new Set(announced.map(({ id }) => id));
  // Their steers end with the run: neither their messages nor announcements for them may be requeued.
  const isTheirs = isOf(people);
  await dropRetained(tx, runId, (row) => isTheirs(row) || ids.has(row.id));
  await cancelRun(tx, lane, { reason: 'revoked', effects });
}

/** Selects the announcements of sub-agents that worked for them. */
function announcementsTo(tx: Tx, people: readonly Person[]) {
  return tx.db
    .selectFrom('inbox')
    .innerJoin('children', (join) =>
      join.on('children.id', '=', sql<string>`substr("inbox"."sourceKey", length('child:') + 1)`),
    )
    .where('inbox.source', '=', 'child')
    .where('inbox.sourceKey', 'like', 'child:%')
    .where(hasTaken('children.treeId', people));
}

/** Selects the open tasks of conversations; those of sub-agents end together with them. */
function tasksFor(tx: Tx, people: readonly Person[]) {
  return tx.db
    .selectFrom('tasks')
    .where(isOpenTask())
    .where('tasks.laneKey', 'not like', 'agent:%')
    .where(hasTaken('tasks.treeId', people));
}

/** Selects the title items of sessions whose first message is theirs. */
function titlesFor(tx: Tx, people: readonly Person[]) {
  const openingRun = sql<string>`(
    select "first"."runId" from "transcript" as "first"
    where "first"."sessionId" = substr("inbox"."sourceKey", length('title:') + 1) and "first"."role" = 'user'
    order by "first"."position" limit 1
  )`;
  return tx.db
    .selectFrom('inbox')
    .where('inbox.source', '=', 'job')
    .where('inbox.sourceKey', 'like', 'title:%')
    .where(hasTaken(openingRun, people));
}

/** Tests whether the run has taken a message of theirs, or belongs to the tree of a run that has. */
function isRunFor(people: readonly Person[]): RawBuilder<SqlBool> {
  return sql<SqlBool>`(${hasTaken('runs.id', people)} or ${hasTaken('runs.treeId', people)})`;
}

/** Tests whether the run with this id has taken a message of theirs. */
function hasTaken(
  run: 'runs.id' | 'runs.treeId' | 'children.treeId' | 'tasks.treeId' | RawBuilder<string>,
  people: readonly Person[],
): RawBuilder<SqlBool> {
  const runId = typeof run === 'string' ? sql.ref(run) : run;
  return sql<SqlBool>`exists (
    select 1 from "inbox" as "said" where "said"."runId" = ${runId} and ${isFrom('said', people)}
  )`;
}

function isFrom(table: 'inbox' | 'said', people: readonly Person[]): RawBuilder<SqlBool> {
  const each = people.map(
    ({ account, peerId }) =>
      sql`(${sql.ref(`${table}.account`)} = ${account} and ${sql.ref(`${table}.senderId`)} = ${peerId})`,
  );
  return sql<SqlBool>`(${sql.join(each, sql` or `)})`;
}

type Sender = { readonly account: string; readonly senderId: string };

function isOf(people: readonly Person[]): (row: Sender) => boolean {
  return ({ account, senderId }) =>
    people.some((person) => person.account === account && person.peerId === senderId);
}
