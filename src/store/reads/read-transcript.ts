import type { Selectable } from 'kysely';
import { parseJson } from '#channel-kit/parse-json.ts';
import type { ForkPoint } from '#contracts/child.ts';
import { transcriptId } from '#contracts/ids.ts';
import type { MessagePart, TranscriptMessage, Unsendable } from '#contracts/message.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { findRow } from '../base/row-access.ts';
import type { TranscriptTable } from '../base/run-tables.ts';
import type { PromptSizes } from '../lanes/commit-summary.ts';

/** A session's stored context. */
export type StoredContext = {
  /** Replaces everything before the messages. */
  readonly summary: TranscriptMessage | undefined;
  /** Finished messages from the summary's cut on, in position order. */
  readonly messages: readonly TranscriptMessage[];
  /** Tokens of the session's last model call, including its answer; undefined before the first call. */
  readonly tokens: number | undefined;
  /** Sizes from its last run; 0 before the first run. */
  readonly sizes: PromptSizes;
};

/** Reads the context: only what the summary has left, however long the conversation is. */
export const readContext: StoreQuery<{ readonly sessionId: string }, StoredContext> = {
  query: 'readContext',
  isShared: true,
  run: async (tx, { sessionId }) => {
    const rows = await context.all(tx, { sessionId });
    const [first] = rows;
    const summaryId = first?.summaryMessageId ?? null;
    const summary = rows.find(({ id }) => id === summaryId);
    const tokens = first === undefined ? 0 : first.promptTokens + first.completionTokens;
    return {
      summary: summary && messageOf(summary),
      messages: rows.filter(({ isSummary }) => isSummary === 0).map(messageOf),
      tokens: tokens === 0 ? undefined : tokens,
      sizes: { instructionTokens: first?.instructionTokens ?? 0, toolTokens: first?.toolTokens ?? 0 },
    };
  },
};

/** Reads the session's history as the next model call sees it: its summary, then the messages from the cut on. */
export const readHistory: StoreQuery<{ readonly sessionId: string }, readonly TranscriptMessage[]> = {
  query: 'readHistory',
  run: async (tx, of) => {
    const { summary, messages } = await readContext.run(tx, of);
    return summary === undefined ? messages : [summary, ...messages];
  },
};

const columns = [
  'id',
  'role',
  'parts',
  'note',
  'model',
  'unsendable',
  'isSummary',
  'createdAt',
  'position',
] as const;

/** A summary is appended after the messages that it keeps, so the range from the cut on contains it too. */
const context = prepared((db, of: QueryParams<{ sessionId: string }>) =>
  db
    .selectFrom('sessions')
    .innerJoin('transcript', 'transcript.sessionId', 'sessions.id')
    .select(columns.map((column) => `transcript.${column}` as const))
    .select(['summaryMessageId', 'promptTokens', 'completionTokens', 'instructionTokens', 'toolTokens'])
    .where('sessions.id', '=', of.sessionId)
    .where('transcript.sessionId', '=', of.sessionId)
    .where('isFinished', '=', 1)
    .whereRef('position', '>=', 'keptFrom')
    .orderBy('position'),
);

/**
 * Reads a session's history up to a fork point. Forks copy nothing: if the session was itself forked, its beginning is
 * read from its own origin.
 */
export const readForkedHistory: StoreQuery<ForkPoint, readonly TranscriptMessage[]> = {
  query: 'readForkedHistory',
  run: (tx, fork) => historyAt(tx, fork),
};

async function historyAt(tx: Tx, fork: ForkPoint): Promise<readonly TranscriptMessage[]> {
  const { sessionId, summaryMessageId, keptFrom, position } = fork;
  const rows = await tx.db
    .selectFrom('transcript')
    .select(columns)
    .where('sessionId', '=', sessionId)
    .where('isFinished', '=', 1)
    .where('isSummary', '=', 0)
    .where('position', '>=', keptFrom)
    .where('position', '<', position)
    .orderBy('position')
    .execute();
  const own = rows.map(messageOf);
  // A summary covers everything before it, including the history that the session was forked from.
  if (summaryMessageId !== null) return [...(await readSummary(tx, summaryMessageId)), ...own];
  const session = await findRow(tx, 'sessions', sessionId, ['forkedFrom']);
  const earlier = session?.forkedFrom ?? null;
  // Written by Parley when the sub-agent was spawned.
  return earlier === null ? own : [...(await historyAt(tx, parseJson(earlier) as ForkPoint)), ...own];
}

async function readSummary(tx: Tx, id: string): Promise<readonly TranscriptMessage[]> {
  const row = tx.db.selectFrom('transcript').select(columns).where('id', '=', id);
  return (await row.execute()).map(messageOf);
}

export type PageRequest = { readonly sessionId: string; readonly before?: number; readonly limit: number };

/** Reads a page of a transcript for lists and tools, newest last, including unfinished messages. */
export const readTranscriptPage: StoreQuery<PageRequest, readonly TranscriptMessage[]> = {
  query: 'readTranscriptPage',
  run: async (tx, { sessionId, before, limit }) => {
    let query = tx.db
      .selectFrom('transcript')
      .select(columns)
      .where('sessionId', '=', sessionId)
      .orderBy('position', 'desc')
      .limit(limit);
    if (before !== undefined) query = query.where('position', '<', before);
    return (await query.execute()).reverse().map(messageOf);
  },
};

function messageOf(row: Pick<Selectable<TranscriptTable>, (typeof columns)[number]>): TranscriptMessage {
  return {
    // Ids and roles come from Parley's own rows.
    id: transcriptId(row.id),
    role: row.role as TranscriptMessage['role'],
    parts: partsOf(row.parts),
    ...(row.note !== null && { note: row.note }),
    ...(row.model !== null && { model: row.model }),
    ...(row.unsendable !== null && { unsendable: row.unsendable as Unsendable }),
    createdAt: row.createdAt,
    position: row.position,
    ...(row.isSummary === 1 && { isSummary: true }),
  };
}

/** Parses a message's parts. A damaged row must not make the rest of the conversation unreadable. */
function partsOf(stored: string): readonly MessagePart[] {
  try {
    return json.parts(stored);
  } catch {
    return [{ type: 'text', data: { text: '[This message cannot be read any more.]' } }];
  }
}

/** Reads the request that a person added to the command that began the run; undefined if there is none. */
export const readCompactHint: StoreQuery<{ readonly runId: string }, string | undefined> = {
  query: 'readCompactHint',
  run: async (tx, { runId }) => {
    const row = await tx.db
      .selectFrom('inbox')
      .select('content')
      .where('runId', '=', runId)
      .where('state', '=', 'taken')
      .executeTakeFirst();
    // Made by the command's `load`.
    const loaded = json.content(row?.content ?? '{}').command?.input as
      | { readonly input?: { readonly hint?: string } }
      | undefined;
    return loaded?.input?.hint;
  },
};
