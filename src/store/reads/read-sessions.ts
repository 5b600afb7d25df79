import { type SqlBool, sql } from 'kysely';
import { textOf } from '#contracts/message.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { type RowOf, type WithoutNulls, withoutNulls } from '../base/row-access.ts';
import { senderRef } from '../items/item-change.ts';
import { titleSessionOf } from '../lanes/titles.ts';
import { readContext } from './read-transcript.ts';

/** A session as shown in lists. */
export type SessionSummary = WithoutNulls<RowOf<typeof sessionRows>>;

function sessionRows(tx: Tx) {
  return tx.db
    .selectFrom('sessions')
    .select(['id', 'key', 'agentId', 'title', 'messageCount', 'promptTokens', 'completionTokens', 'cost'])
    .select(['model', 'instructionTokens', 'toolTokens', 'createdAt', 'updatedAt']);
}

/**
 * Reads the latest sessions, or those with the given keys or ids. Sessions that name others aren't listed. The latest
 * one of a key needn't be its lane's current session: a note about an earlier session's message updates that session.
 */
export const readSessions: StoreQuery<
  { readonly keys?: readonly string[]; readonly ids?: readonly string[]; readonly limit: number },
  readonly SessionSummary[]
> = {
  query: 'readSessions',
  run: async (tx, { keys, ids, limit }) => {
    let query = sessionRows(tx).orderBy('updatedAt', 'desc').limit(limit);
    if (keys) query = query.where('key', 'in', keys);
    else if (ids) query = query.where('id', 'in', ids);
    else query = query.where('id', 'not like', 'title-%');
    return (await query.execute()).map(withoutNulls);
  },
};

/** The state of a lane, for `/status` and `/queue`. */
export type LaneStatus = Awaited<ReturnType<typeof readStatus>>;

/** Reads a lane's state; undefined before its first message. */
export const readLaneStatus: StoreQuery<{ readonly laneKey: string }, LaneStatus> = {
  query: 'readLaneStatus',
  run: (tx, { laneKey }) => readStatus(tx, laneKey),
};

async function readStatus(tx: Tx, laneKey: string) {
  const lane = await tx.db
    .selectFrom('lanes')
    .leftJoin('runs', 'runs.id', 'lanes.runId')
    .select(['lanes.key', 'lanes.sessionId', 'mode', 'debounceMs', 'quietMs', 'cap', 'drop', 'overrides'])
    .select(['lanes.runId', 'runs.startedAt as runStartedAt', 'runs.parkedAt'])
    .where('lanes.key', '=', laneKey)
    .executeTakeFirst();
  if (!lane) return undefined;
  const waiting = await tx.db
    .selectFrom('inbox')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('laneKey', '=', laneKey)
    .where(isOpenItem())
    .executeTakeFirst();
  return {
    ...withoutNulls(lane),
    /** Settings made with `/queue` for this lane. */
    overrides: json.queueSettings(lane.overrides),
    isRunning: lane.runId !== null,
    waiting: Number(waiting?.count ?? 0),
  };
}

/** A conversation as shown in lists; times in ms. The cost, in micro-dollars, includes its title and sub-agents. */
export type SessionReport = ReturnType<typeof reportOf> & {
  /** Who wrote last, and on which network; absent if only programs wrote, or nothing is kept of it. */
  readonly lastSender?: LastSender;
};

/** `ref`: `channel:peer`. The name is the person's own choice and proves nothing. */
type LastSender = { readonly network: string; readonly ref: string; readonly name: string };

/** Reads the most recently updated conversations, newest first, without sub-agents' sessions. */
export const readSessionReports: StoreQuery<{ readonly limit: number }, readonly SessionReport[]> = {
  query: 'readSessionReports',
  run: async (tx, { limit }) => {
    const rows = await conversations(tx).orderBy('updatedAt', 'desc').limit(limit).execute();
    const usage = await usageOf(tx, rows);
    const senders = await lastSendersOf(tx, rows);
    return rows.map((row) => ({ ...reportOf(row, usage.get(row.id)), ...senders.get(row.key) }));
  },
};

/** Ended model calls for one purpose; calls that were never sent don't count. */
export type PurposeUsage = {
  readonly purpose: string;
  readonly calls: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Micro-dollars. */
  readonly cost: number;
};

/** A conversation with its usage by purpose and its summary. */
export type SessionDetails = SessionReport & {
  readonly usage: readonly PurposeUsage[];
  readonly summary: string | undefined;
};

/** `several`: the ids of more than one conversation begin with the given text. */
type FoundSession =
  | { readonly kind: 'found'; readonly session: SessionDetails }
  | { readonly kind: 'none' | 'several' };

/** Finds a conversation by the beginning of its id, or the latest one with a session key. */
export const findSession: StoreQuery<{ readonly idOrKey: string }, FoundSession> = {
  query: 'findSession',
  run: async (tx, { idOrKey }) => {
    const byKey = conversations(tx).where('key', '=', idOrKey).orderBy('createdAt', 'desc').limit(1);
    const byId = conversations(tx)
      .where(sql<SqlBool>`substr(id, 1, ${idOrKey.length}) = ${idOrKey}`)
      .limit(2);
    const [row, other] = [...(await byKey.execute()), ...(await byId.execute())];
    if (row === undefined || idOrKey === '') return { kind: 'none' };
    if (other !== undefined) return { kind: 'several' };
    const { summary } = await readContext.run(tx, { sessionId: row.id });
    const usage = (await usageOf(tx, [row])).get(row.id) ?? [];
    const sender = (await lastSendersOf(tx, [row])).get(row.key);
    return {
      kind: 'found',
      session: { ...reportOf(row, usage), ...sender, usage, summary: summary && textOf(summary.parts) },
    };
  },
};

function conversations(tx: Tx) {
  return tx.db
    .selectFrom('sessions')
    .select(['id', 'key', 'agentId', 'title', 'messageCount', 'cost', 'summaryMessageId'])
    .select(['createdAt', 'updatedAt', 'endedAt'])
    .where('parentSessionId', 'is', null);
}

type Row = RowOf<typeof conversations>;

function reportOf(row: Row, usage: readonly PurposeUsage[] = []) {
  const { summaryMessageId, ...session } = withoutNulls(row);
  const sumOf = (count: (each: PurposeUsage) => number) => usage.reduce((sum, each) => sum + count(each), 0);
  return {
    ...session,
    /** Totals of its own model calls; those of its sub-agents are listed with the sub-agents. */
    tokens: {
      prompt: sumOf((each) => each.promptTokens),
      completion: sumOf((each) => each.completionTokens),
    },
    /** Whether a summary replaces its beginning. */
    isSummarized: summaryMessageId !== undefined,
  };
}

/** Reads by session key who wrote last in each conversation. */
async function lastSendersOf(tx: Tx, rows: readonly Row[]) {
  const keys = [...new Set(rows.map(({ key }) => key))];
  if (keys.length === 0) return new Map<string, { readonly lastSender: LastSender }>();
  // One row each: an aggregate would read the whole history of each conversation.
  const found = await Promise.all(keys.map((laneKey) => lastSent.all(tx, { laneKey })));
  return new Map(
    found.flat().map(({ laneKey, content, ...row }) => {
      const ref = senderRef(row);
      const lastSender = { network: ref.split(':')[0] ?? ref, ref, name: json.content(content).sender.name };
      return [laneKey, { lastSender }] as const;
    }),
  );
}

const lastSent = prepared((db, of: QueryParams<{ laneKey: string }>) =>
  db
    .selectFrom('inbox')
    .select(['laneKey', 'account', 'senderId', 'content'])
    .where('laneKey', '=', of.laneKey)
    .where('senderId', '<>', '')
    .orderBy('seq', 'desc')
    .limit(1),
);

/** Reads the usage of sessions by id, including that of their titles. */
async function usageOf(tx: Tx, rows: readonly Row[]): Promise<ReadonlyMap<string, readonly PurposeUsage[]>> {
  const byPurpose = new Map<string, PurposeUsage[]>();
  if (rows.length === 0) return byPurpose;
  const owners = new Map(rows.flatMap(({ id }) => [id, titleSessionOf(id)].map((own) => [own, id] as const)));
  const { rows: found } = await sql<PurposeUsage & { readonly sessionId: string }>`
    select "sessionId", purpose, cast(sum(calls) as bigint) as calls,
      cast(sum("inputTokens" + "cacheReadTokens" + "cacheWriteTokens") as bigint) as "promptTokens",
      cast(sum("outputTokens") as bigint) as "completionTokens", cast(sum(cost) as bigint) as cost
    from "sessionUsage" where "sessionId" in (${sql.join([...owners.keys()])})
    group by "sessionId", purpose order by purpose desc`.execute(tx.db);
  for (const { sessionId, ...usage } of found) {
    const owner = owners.get(sessionId) ?? sessionId;
    byPurpose.set(owner, [...(byPurpose.get(owner) ?? []), usage]);
  }
  return byPurpose;
}
