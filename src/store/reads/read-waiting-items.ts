import { type Selectable, type SqlBool, sql } from 'kysely';
import type { LaneClass } from '#contracts/lane-class.ts';
import type { StoreQuery } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { oneLine } from '../base/one-line.ts';
import type { InboxTable } from '../base/tables.ts';
import { senderRef } from '../items/item-change.ts';

/** A waiting item as listed by `/queue`. */
export type WaitingItem = {
  /** Identifies it for cancelling, promoting and editing; it stays the same however the order changes. */
  readonly number: number;
  readonly kind: 'message' | 'correction' | 'command';
  /** `held`: awaiting the rest of its album or text; `fetching`: awaiting its files. */
  readonly state: 'waiting' | 'held' | 'fetching';
  /** `<channel>:<peer>`. */
  readonly sender: string;
  readonly senderName: string;
  /** The beginning of the text, as one line. */
  readonly excerpt: string;
  /** How many files came with it. */
  readonly files: number;
  /** Moved up by somebody, or by the mode `interrupt`. */
  readonly isAhead: boolean;
  readonly ageMs: number;
};

/** Reads a lane's waiting items, in the order in which they will be taken. */
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
    return rows.map((row) => waitingItemOf(row, tx.now));
  },
};

/** A waiting item among those of all conversations. */
export type QueuedItem = WaitingItem & {
  readonly id: string;
  readonly laneKey: string;
  /** Position in its lane; 1 is taken next. */
  readonly position: number;
  readonly mode: string;
};

/**
 * Reads the waiting items of conversations, lane by lane in the order in which they will be taken; lanes of Parley's
 * own are left out.
 */
export const readQueuedItems: StoreQuery<{ readonly limit: number }, readonly QueuedItem[]> = {
  query: 'readQueuedItems',
  usesClock: true,
  run: async (tx, { limit }) => {
    const rows = await tx.db
      .selectFrom('inbox')
      .innerJoin('lanes', 'lanes.key', 'inbox.laneKey')
      .selectAll('inbox')
      .select('lanes.mode')
      .where('lanes.class', '=', peoples)
      .where(isOpenItem())
      .orderBy('inbox.laneKey')
      .orderBy('inbox.rank')
      .orderBy('inbox.seq')
      .limit(limit)
      .execute();
    return [...Map.groupBy(rows, ({ laneKey }) => laneKey).values()].flatMap((inLane) =>
      inLane.map((row, index) => {
        const { id, laneKey, mode } = row;
        return { id, laneKey, position: index + 1, mode, ...waitingItemOf(row, tx.now) };
      }),
    );
  },
};

/** `several`: the ids of more than one waiting item begin with the given text. */
export type FoundItem =
  | { readonly kind: 'found'; readonly id: string; readonly laneKey: string; readonly number: number }
  | { readonly kind: 'none' | 'several' };

/** Finds a conversation's waiting item by the beginning of its id, or any of its items by the complete id. */
export const findQueuedItem: StoreQuery<{ readonly id: string }, FoundItem> = {
  query: 'findQueuedItem',
  run: async (tx, { id }) => {
    const items = tx.db
      .selectFrom('inbox')
      .innerJoin('lanes', 'lanes.key', 'inbox.laneKey')
      .select(['inbox.id', 'inbox.laneKey', 'inbox.seq as number'])
      .where('lanes.class', '=', peoples);
    const exact = await items.where('inbox.id', '=', id).executeTakeFirst();
    if (exact !== undefined) return { kind: 'found', ...exact };
    const [item, other] = await items
      .where(isOpenItem())
      .where(sql<SqlBool>`substr(inbox.id, 1, ${id.length}) = ${id}`)
      .limit(2)
      .execute();
    if (item === undefined || id === '') return { kind: 'none' };
    return other === undefined ? { kind: 'found', ...item } : { kind: 'several' };
  },
};

/** Reads the complete text of a conversation's waiting item, for editing; undefined if it is no longer waiting. */
export const readItemText: StoreQuery<{ readonly id: string }, string | undefined> = {
  query: 'readItemText',
  run: async (tx, { id }) => {
    const row = await tx.db
      .selectFrom('inbox')
      .innerJoin('lanes', 'lanes.key', 'inbox.laneKey')
      .select('inbox.content')
      .where('inbox.id', '=', id)
      .where('lanes.class', '=', peoples)
      .where(isOpenItem())
      .executeTakeFirst();
    return row && json.content(row.content).text;
  },
};

const peoples: LaneClass = 'main';

/** Returns an inbox row as shown in lists; `now` is by the database's clock, ms. */
export function waitingItemOf(row: Selectable<InboxTable>, now: number): WaitingItem {
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
    ageMs: Math.max(0, now - row.createdAt),
  };
}
