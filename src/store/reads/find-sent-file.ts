import type { OutboundContent } from '#contracts/outbound.ts';
import type { StoreQuery } from '../base/command.ts';
import { json } from '../base/json.ts';
import { findRow } from '../base/row-access.ts';

/** A file that a part sends. */
export type StoredFile = Extract<OutboundContent, { kind: 'media' }> & {
  /** The lane whose messages show it. */
  readonly laneKey: string;
};

/** Finds the file that a part sends. `path` is its name in the media folder. */
export const findSentFile: StoreQuery<{ readonly key: string }, StoredFile | undefined> = {
  query: 'findSentFile',
  run: async (tx, { key }) => {
    const row = await findRow(tx, 'outbox', key, ['laneKey', 'content']);
    const content = row && json.outbound(row.content);
    return row?.laneKey && content?.kind === 'media' ? { ...content, laneKey: row.laneKey } : undefined;
  },
};
