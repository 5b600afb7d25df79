import { type SqlBool, sql } from 'kysely';
import { textOf } from '#contracts/message.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { titleLaneOf } from '../lanes/titles.ts';
import type { SessionSummary } from './read-sessions.ts';
import { readContext } from './read-transcript.ts';

/** Facts about the last run alone, and about the choice of its model. */
type LastRun = 'promptTokens' | 'completionTokens' | 'instructionTokens' | 'toolTokens' | 'model';

/** A conversation as lists show it; times in ms, cost in micro-dollars. */
export type SessionReport = Omit<SessionSummary, LastRun> & {
  /** Sums of all its model calls; those of its sub-agents are listed with them. */
  readonly tokens: { readonly prompt: number; readonly completion: number };
  /** With its title and its sub-agents. */
  readonly cost: number;
  /** Whether a summary stands for its beginning. */
  readonly isSummarised: boolean;
  /** When another session took its place. */
  readonly endedAt: number | undefined;
};

/** Reads the conversations that were last written in, newest first; not the sub-agents' sessions. */
export const readSessionReports: StoreQuery<{ readonly limit: number }, readonly SessionReport[]> = {
  query: 'readSessionReports',
  run: async (tx, { limit }) => {
    const rows = await conversations(tx).orderBy('updatedAt', 'desc').limit(limit).execute();
    const reports: SessionReport[] = [];
    for (const row of rows) reports.push(await reportOf(tx, row));
    return reports;
  },
};

/** Model calls of one purpose that have ended; those that never left are none. */
export type PurposeUsage = {
  readonly purpose: string;
  readonly calls: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Micro-dollars. */
  readonly cost: number;
};

/** A conversation with what it was spent on, and its summary. */
export type SessionDetails = SessionReport & {
  readonly usage: readonly PurposeUsage[];
  readonly summary: string | undefined;
};

/** `several`: more than one conversation begins with that id. */
export type FoundSession =
  | { readonly kind: 'found'; readonly session: SessionDetails }
  | { readonly kind: 'none' | 'several' };

/** Finds a conversation by the beginning of its id, or the latest one of a session key. */
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
    const usage = await usageOf(tx, row);
    return {
      kind: 'found',
      session: { ...(await reportOf(tx, row)), usage, summary: summary && textOf(summary.parts) },
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

type Row = Awaited<ReturnType<ReturnType<typeof conversations>['execute']>>[number];

async function reportOf(tx: Tx, row: Row): Promise<SessionReport> {
  const { summaryMessageId, title, endedAt, ...session } = row;
  const usage = await usageOf(tx, row);
  const sumOf = (count: (each: PurposeUsage) => number) => usage.reduce((sum, each) => sum + count(each), 0);
  return {
    ...session,
    title: title ?? undefined,
    tokens: {
      prompt: sumOf((each) => each.promptTokens),
      completion: sumOf((each) => each.completionTokens),
    },
    isSummarised: summaryMessageId !== null,
    endedAt: endedAt ?? undefined,
  };
}

async function usageOf(tx: Tx, { id, key }: Row): Promise<readonly PurposeUsage[]> {
  return usageByPurpose.all(tx, { id, key, titleKey: titleLaneOf(id) });
}

/** Model calls have no index by session; each run has taken something in its lane. */
const usageByPurpose = prepared((db, of: QueryParams<{ id: string; key: string; titleKey: string }>) => {
  const query = sql<PurposeUsage>`
    select purpose, count(*) as calls,
      cast(sum("inputTokens" + "cacheReadTokens" + "cacheWriteTokens") as bigint) as "promptTokens",
      cast(sum("outputTokens") as bigint) as "completionTokens", cast(sum(cost) as bigint) as cost
    from "modelCalls"
    where "runId" in (
        select "runId" from inbox where "laneKey" in (${of.key}, ${of.titleKey}) and "runId" is not null
      ) and "sessionId" in (${of.id}, 'title-' || ${of.id}) and state in ('settled', 'unknown')
    group by purpose order by purpose desc`;
  return { compile: () => query.compile(db) };
});
