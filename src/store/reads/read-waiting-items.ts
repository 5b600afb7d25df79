import { type Selectable, type SqlBool, sql } from 'kysely';
import type { LaneClass } from '#contracts/lane-class.ts';
import type { StoreQuery } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { oneLine } from '../base/one-line.ts';
import type { InboxTable } from '../base/tables.ts';
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
    return rows.map((row) => waitingItemOf(row, tx.now));
  },
};

/** A waiting item among those of all conversations. */
export type QueuedItem = WaitingItem & {
  readonly id: string;
  readonly laneKey: string;
  /** Counted from 1, which is taken next. */
  readonly position: number;
  readonly mode: string;
};

/** Everything that waits in conversations, lane by lane in the order in which it will be taken; not in lanes of Parley's own. */
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

/** `several`: more than one waiting item begins with that id. */
export type FoundItem =
  | { readonly kind: 'found'; readonly id: string; readonly laneKey: string; readonly number: number }
  | { readonly kind: 'none' | 'several' };

/** Finds a waiting item of a conversation by the beginning of its id, or one that has been taken by the whole id. */
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

/** The whole text of a waiting item of a conversation, for who edits it; undefined when it waits no more. */
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

/** A row of the inbox as lists show it; `now` by the database's clock, ms. */
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
