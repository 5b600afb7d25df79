import { sql } from 'kysely';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Tx } from '../base/command.ts';
import { conversationKeyOf } from '../base/conversation-key.ts';
import { ensureRow } from '../base/insert-row.ts';
import type { StoredContent } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, findRow } from '../base/row-by-key.ts';
import { lockRows } from '../base/row-locks.ts';
import { type FirstPartState, storePart } from './part-states.ts';

/** A part to insert. */
export type NewPart<Content extends StoredContent = OutboundContent> = {
  readonly key: string;
  readonly route: ReplyRoute;
  readonly content: Content;
  readonly purpose: 'reply' | 'notice' | 'tool';
  readonly runId?: string;
  readonly answer?: string;
  /** The part's position in a session's timeline. */
  readonly timeline?: { readonly laneKey: string; readonly seq: number };
};

/**
 * Puts a part into its conversation's delivery order and returns the conversation's key. Follows a conversation that
 * has moved. A second insert under the same key is a no-op.
 */
export async function insertPart(tx: Tx, part: NewPart<StoredContent>): Promise<string> {
  const known = await findRow(tx, 'outbox', part.key, ['conversationKey']);
  if (known) return known.conversationKey;
  const place = await takePlace(tx, part.route);
  await writePart(tx, part, { ...place, state: place.isUnreachable ? 'failed' : 'pending' });
  return place.conversationKey;
}

export type PartPlace = {
  readonly route: ReplyRoute;
  readonly conversationKey: string;
  readonly place: number;
  readonly state: FirstPartState;
};

export async function writePart(tx: Tx, part: NewPart<StoredContent>, at: PartPlace): Promise<void> {
  const row = {
    key: part.key,
    conversationKey: at.conversationKey,
    place: at.place,
    laneKey: part.timeline?.laneKey ?? null,
    seq: part.timeline?.seq ?? null,
    runId: part.runId ?? null,
    answer: part.answer ?? null,
    purpose: part.purpose,
    route: JSON.stringify(at.route),
    content: JSON.stringify(part.content),
    createdAt: tx.now,
  };
  await storePart(tx, row, at.state);
}

type DeliverySlot = {
  readonly route: ReplyRoute;
  readonly conversationKey: string;
  readonly place: number;
  readonly isUnreachable: boolean;
};

/** Limits how many moves are followed: a group moves once or twice in its life; more mean that ids form a cycle. */
export const maxMoves = 8;

export async function takePlace(tx: Tx, route: ReplyRoute, moves = 0): Promise<DeliverySlot> {
  const conversationKey = conversationKeyOf(route);
  let row = await advancePlace.first(tx, { conversationKey });
  if (!row) {
    await ensureConversation(tx, conversationKey);
    row = await advancePlace.first(tx, { conversationKey });
  }
  if (row?.movedTo && moves < maxMoves) {
    const next = { ...route, conversation: row.movedTo as ReplyRoute['conversation'] };
    return takePlace(tx, next, moves + 1);
  }
  return {
    route,
    conversationKey,
    place: (row?.nextPart ?? 1) - 1,
    isUnreachable: row?.unreachableAt != null,
  };
}

const advancePlace = prepared((db, of: QueryParams<{ conversationKey: string }>) =>
  db
    .updateTable('conversations')
    .set((eb) => ({ nextPart: eb('nextPart', '+', 1) }))
    .where('key', '=', of.conversationKey)
    .returning(['nextPart', 'movedTo', 'unreachableAt']),
);

/** Inserts the conversation's row unless it exists. */
export async function ensureConversation(tx: Tx, key: string): Promise<void> {
  await ensureRow(tx, 'conversations', { key, nextPart: 1, deliveryEpoch: 0, deliveryUntil: 0 });
}

/** Locks the conversation's row, so that none of its parts is claimed or recorded until the transaction ends. */
export async function lockConversation(tx: Tx, key: string): Promise<void> {
  if (tx.dialect !== 'postgres') return;
  await lockRows(tx, tx.db.selectFrom('conversations').select('key').where('key', '=', key));
}

/**
 * Locks the conversations in the order of their keys, and makes missing ones in that order too. Meant for a step that
 * sends to several of them.
 */
export async function lockConversations(tx: Tx, keys: readonly string[]): Promise<void> {
  const several = [...new Set(keys)];
  if (tx.dialect !== 'postgres' || several.length < 2) return;
  await lockOrMake.post(tx, { keys: JSON.stringify(several) });
}

/** An existing conversation conflicts with itself, which locks it without changing it. */
const lockOrMake = prepared(
  (_, of: QueryParams<{ keys: string }>) => sql`
    insert into conversations (key, "nextPart", "deliveryEpoch", "deliveryUntil")
    select key, 1, 0, 0 from json_array_elements_text(${of.keys}::json) as key order by key
    on conflict (key) do update set key = excluded.key where false`,
);

/** Sets when a group is answered: every message, or only those that mention the bot. */
export async function setActivation(tx: Tx, key: string, activation: 'mention' | 'always'): Promise<void> {
  await ensureConversation(tx, key);
  await changeRow(tx, 'conversations', key, { activation });
}
