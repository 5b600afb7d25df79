import type { Selectable } from 'kysely';
import type { InboxId, SessionId, TranscriptId } from '#contracts/ids.ts';
import type { TranscriptMessage } from '#contracts/message.ts';
import type { StoreQuery } from '../command.ts';
import { json } from '../json.ts';
import type { TranscriptTable } from '../tables.ts';

/** The session's history as the next model call sees it: from its summary on, finished messages only. */
export const readHistory: StoreQuery<{ readonly sessionId: string }, readonly TranscriptMessage[]> = {
  query: 'readHistory',
  run: async (tx, { sessionId }) => {
    const session = await tx.db
      .selectFrom('sessions')
      .select('summaryMessageId')
      .where('id', '=', sessionId)
      .executeTakeFirst();
    let query = tx.db
      .selectFrom('transcript')
      .selectAll()
      .where('sessionId', '=', sessionId)
      .where('isFinished', '=', 1)
      .orderBy('position');
    if (session?.summaryMessageId) {
      const summary = tx.db
        .selectFrom('transcript')
        .select('position')
        .where('id', '=', session.summaryMessageId);
      query = query.where('position', '>=', summary);
    }
    return (await query.execute()).map(messageOf);
  },
};

export type PageRequest = { readonly sessionId: string; readonly before?: number; readonly limit: number };

/** A page of a transcript, newest last, whatever its state; for lists and tools. */
export const readTranscriptPage: StoreQuery<
  PageRequest,
  readonly (TranscriptMessage & { readonly position: number })[]
> = {
  query: 'readTranscriptPage',
  run: async (tx, { sessionId, before, limit }) => {
    let query = tx.db
      .selectFrom('transcript')
      .selectAll()
      .where('sessionId', '=', sessionId)
      .orderBy('position', 'desc')
      .limit(limit);
    if (before !== undefined) query = query.where('position', '<', before);
    return (await query.execute()).reverse().map((row) => ({ ...messageOf(row), position: row.position }));
  },
};

function messageOf(row: Selectable<TranscriptTable>): TranscriptMessage {
  return {
    // Ids and roles come from our own rows.
    id: row.id as TranscriptId,
    sessionId: row.sessionId as SessionId,
    role: row.role as TranscriptMessage['role'],
    parts: json.parts(row.parts),
    ...(row.model !== null && { model: row.model }),
    createdAt: row.createdAt,
    inboundIds: [] as readonly InboxId[],
  };
}
