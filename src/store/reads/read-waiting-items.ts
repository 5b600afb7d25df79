import type { StoreQuery } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { oneLine } from '../base/one-line.ts';
import { senderRef } from '../items/item-change.ts';

/** A waiting item as `/queue` lists it. */
export type WaitingItem = {
  /** By which it is cancelled, promoted or edited: it stays, whatever happens to the order. */
  readonly number: number;
  readonly kind: 'message' | 'correction' | 'command';
  /** `held` for the rest of its album or text, `fetching` its files. */
  readonly state: 'waiting' | 'held' | 'fetching';
  /** `<channel>:<peer>`. */
  readonly sender: string;
  readonly senderName: string;
  /** The beginning of the text, on one line. */
  readonly excerpt: string;
  /** How many files came with it. */
  readonly files: number;
  /** Put ahead by somebody, or by the mode `interrupt`. */
  readonly isAhead: boolean;
  readonly ageMs: number;
};

/** Everything that waits in a lane, in the order in which it will be taken. */
export const readWaitingItems: StoreQuery<{ readonly laneKey: string }, readonly WaitingItem[]> = {
  query: 'readWaitingItems',
  usesClock: true,
  run: async (tx, { laneKey }) => {
    const rows = await tx.db
      .selectFrom('inbox')
      .selectAll()
      .where('laneKey', '=', laneKey)
      .where(isOpenItem())
      .orderBy('rank')
      .orderBy('seq')
      .execute();
    return rows.map((row) => {
      const content = json.content(row.content);
      const isWaiting = row.state === 'waiting';
      return {
        number: row.seq,
        kind: content.note?.kind === 'correction' ? 'correction' : row.kind,
        state: isWaiting && row.isFetching === 1 ? 'fetching' : isWaiting ? 'waiting' : 'held',
        sender: senderRef(row),
        senderName: content.sender.name,
        excerpt: oneLine(content.text),
        files: content.attachments.length,
        isAhead: row.rank < 0,
        ageMs: Math.max(0, tx.now - row.createdAt),
      };
    });
  },
};
