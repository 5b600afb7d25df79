import { sql } from 'kysely';
import type { StoredFile } from '#contracts/attachment.ts';
import type { StoreQuery } from '../base/command.ts';
import { json } from '../base/json.ts';

/** How far back in the lane files are looked for, in positions. */
const lookBack = 2_000;
const maxMessages = 200;

/**
 * Reads the files that came with the messages in a session's transcript, oldest first. Those that may be looked at once
 * are left out.
 */
export const readReceivedFiles: StoreQuery<
  { readonly laneKey: string; readonly sessionId: string },
  readonly StoredFile[]
> = {
  query: 'readReceivedFiles',
  run: async (tx, { laneKey, sessionId }) => {
    const rows = await tx.db
      .selectFrom('inbox')
      .innerJoin('transcript', 'transcript.id', 'inbox.transcriptId')
      .select('inbox.content')
      .where('inbox.laneKey', '=', laneKey)
      .where(
        sql<boolean>`"inbox"."seq" > (select "nextSeq" from "lanes" where "key" = ${laneKey}) - ${lookBack}`,
      )
      .where('inbox.content', 'like', '%"kind":"stored"%')
      .where('transcript.sessionId', '=', sessionId)
      .orderBy('inbox.seq', 'desc')
      .limit(maxMessages)
      .execute();
    const files = rows.toReversed().flatMap(({ content }) => json.content(content).stored ?? []);
    return files.flatMap((file) => (file.kind === 'stored' && !file.isViewOnce ? [file] : []));
  },
};
