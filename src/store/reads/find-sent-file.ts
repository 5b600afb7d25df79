import { filesOf, type OutboundFile, readFileMessageId } from '#contracts/outbound.ts';
import type { StoreQuery } from '../base/command.ts';
import { json } from '../base/json.ts';
import { findRow } from '../base/row-access.ts';

/** A file that a part sends. */
export type StoredFile = OutboundFile & {
  /** The lane whose messages show it. */
  readonly laneKey: string;
};

/** Finds a file that a part sends, by the id of the message that clients show. `path` is its name in the media folder. */
export const findSentFile: StoreQuery<{ readonly id: string }, StoredFile | undefined> = {
  query: 'findSentFile',
  run: async (tx, { id }) => {
    const { partKey, index } = readFileMessageId(id);
    const row = await findRow(tx, 'outbox', partKey, ['laneKey', 'content']);
    const content = row && json.outbound(row.content);
    const file = content?.kind === 'media' ? filesOf(content)[index] : undefined;
    return row?.laneKey && file ? { ...file, laneKey: row.laneKey } : undefined;
  },
};
