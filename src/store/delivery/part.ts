/** Writes the states of parts; no other file does: `pending ⇄ sending`, then `sent`, `unknown` or `failed`. */

import { type Insertable, sql } from 'kysely';
import type { FormattedText } from '#contracts/formatted-text.ts';
import { type MessageId, messageId } from '#contracts/ids.ts';
import type { AskedCommand, OutboundContent } from '#contracts/outbound.ts';
import type { Part } from '#contracts/part.ts';
import { type ReplyRoute, withoutQuote } from '#contracts/route.ts';
import type { Tx } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { json, type StoredContent } from '../base/json.ts';
import { conversationKeyOf } from '../base/keys.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, ensureRow, findRow, insertRow, lockRows, plus } from '../base/row-access.ts';
import type { OutboxTable } from '../base/tables.ts';
import { takeSeq } from '../rows/lane.ts';

type NewRow = Omit<
  Insertable<OutboxTable>,
  'state' | 'problem' | 'attempts' | 'dueAt' | 'sendingAt' | 'endedAt'
>;

/** `failed`: the conversation is unreachable; `sending`: claimed for its first attempt in the step that stores it. */
export type FirstPartState = 'pending' | 'sending' | 'failed';

/** Stores a part; throws when its key is taken. */
async function storePart(tx: Tx, row: NewRow, state: FirstPartState): Promise<void> {
  const isSending = state === 'sending';
  await insertRow(tx, 'outbox', {
    ...row,
    state,
    problem: state === 'failed' ? unreachable : null,
    attempts: isSending ? 1 : 0,
    dueAt: tx.now,
    sendingAt: isSending ? tx.now : null,
    endedAt: state === 'failed' ? tx.now : null,
  });
}

/** Stores a preview, `unknown` until its platform id is known; a second insert under its key changes nothing. */
export async function storePreview(tx: Tx, row: NewRow): Promise<void> {
  const attempt = { attempts: 1, dueAt: tx.now, sendingAt: tx.now };
  await ensureRow(tx, 'outbox', { ...row, ...attempt, state: 'unknown' });
}

const unreachable = 'the conversation is unreachable';

/** Marks the part as handed to the platform; `sendingAt` is when the first attempt that may have arrived began. */
export function beginSending(
  tx: Tx,
  key: string,
  { sendingAt, attempts }: { readonly sendingAt: number; readonly attempts: number },
): Promise<void> {
  return changeRow(tx, 'outbox', key, { state: 'sending', sendingAt, attempts });
}

/**
 * The number of the first attempt that is a repeat. A part in `sending` with a lower number is requeued if its process
 * is known not to have begun the call.
 */
export const firstRepeat = 2;

/** Marks every part in `sending` as repeated, so that no process's journal counts as proof that it wasn't sent. */
export async function distrustSending(tx: Tx): Promise<void> {
  await tx.db
    .updateTable('outbox')
    .set({ attempts: firstRepeat })
    .where(isOpenPart())
    .where('state', '=', 'sending')
    .where('attempts', '<', firstRepeat)
    .execute();
}

type NextAttempt = {
  readonly partKey: string;
  readonly dueAt: number;
  readonly problem: string;
  readonly mayHaveArrivedSince: number | undefined;
};

/** Lets the part wait for another attempt. */
export async function returnPart(tx: Tx, next: NextAttempt): Promise<void> {
  const { partKey, dueAt, problem, mayHaveArrivedSince } = next;
  await changeRow(tx, 'outbox', partKey, {
    state: 'pending',
    sendingAt: mayHaveArrivedSince ?? null,
    dueAt,
    problem,
  });
}

/** Takes back an attempt: outages and requested waits don't consume attempts. */
export async function refundAttempt(tx: Tx, partKey: string): Promise<void> {
  await changeRow(tx, 'outbox', partKey, { attempts: plus(-1) });
}

/** Requeues parts whose call had not started. */
export async function requeueParts(tx: Tx, keys: readonly string[]): Promise<void> {
  await tx.db
    .updateTable('outbox')
    .set({ state: 'pending', attempts: 0, sendingAt: null })
    .where('key', 'in', keys)
    .execute();
}

type PartEnd = {
  readonly state: 'sent' | 'unknown' | 'failed';
  readonly problem: string | null;
  /** JSON of the platform's ids. */
  readonly receipts: string | null;
};

/** Ends the part. */
export function closePart(tx: Tx, key: string, { state, problem, receipts }: PartEnd): Promise<void> {
  return changeRow(tx, 'outbox', key, { state, problem, receipts, endedAt: tx.now });
}

/** Fails the parts of the answer that are still pending. */
export async function failRestOf(tx: Tx, answer: string): Promise<void> {
  await failPending(tx, 'an earlier part of the answer failed').where('answer', '=', answer).execute();
}

/** Fails all pending parts of a conversation that can't be reached. */
export function failUnreachable(tx: Tx, conversationKey: string) {
  return failPending(tx, unreachable)
    .where('conversationKey', '=', conversationKey)
    .returning(['runId', 'answer'])
    .execute();
}

function failPending(tx: Tx, problem: string) {
  return tx.db
    .updateTable('outbox')
    .set({ state: 'failed', problem, endedAt: tx.now })
    .where(isOpenPart())
    .where('state', '=', 'pending');
}

const freshAttempt = {
  attempts: 0,
  sendingAt: null,
  endedAt: null,
  waitAskedSince: null,
  waitAskedUntil: null,
};

/** Lets the part do something else, with fresh attempts. */
export function reopenWith(
  tx: Tx,
  key: string,
  { content, dueAt }: { readonly content: string; readonly dueAt: number },
): Promise<void> {
  const fresh = { attempts: 0, sendingAt: null, endedAt: null, problem: null };
  return changeRow(tx, 'outbox', key, { ...fresh, state: 'pending', content, dueAt, createdAt: tx.now });
}

/** Makes an unknown or failed part pending again. Returns undefined when it is in another state or doesn't exist. */
export function reopenPart(tx: Tx, key: string) {
  return (
    tx.db
      .updateTable('outbox')
      // Its age counts from here, or it would expire again.
      .set({ state: 'pending', dueAt: tx.now, createdAt: tx.now, ...freshAttempt })
      .where('key', '=', key)
      .where('state', 'in', ['unknown', 'failed'])
      .where('purpose', '<>', 'preview')
      .returning(['runId', 'answer', 'conversationKey'])
      .executeTakeFirst()
  );
}

/** Fails a pending or unknown part. Returns undefined when it is in another state or doesn't exist. */
export function dismissPart(tx: Tx, key: string) {
  return tx.db
    .updateTable('outbox')
    .set({ state: 'failed', problem: 'dropped by the operator', endedAt: tx.now })
    .where('key', '=', key)
    .where('state', 'in', ['pending', 'unknown'])
    .returning(['runId', 'answer', 'conversationKey'])
    .executeTakeFirst();
}

/** Records a shown preview's platform id. Returns false when it is known, or an answer has taken the preview over. */
export async function confirmPreview(tx: Tx, key: string, messageId: string): Promise<boolean> {
  const { numUpdatedRows } = await tx.db
    .updateTable('outbox')
    .set({ state: 'sent', receipts: JSON.stringify([messageId]) })
    .where('key', '=', key)
    .where('state', '=', 'unknown')
    .where('endedAt', 'is', null)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0;
}

/** Records that the preview couldn't be shown. */
export async function failPreview(tx: Tx, key: string, problem: string): Promise<void> {
  await changeRow(tx, 'outbox', key, { state: 'failed', problem, endedAt: tx.now });
}

/** Ends the preview, in the transaction in which the answer takes it over or removes it. */
export async function closePreview(tx: Tx, key: string | undefined): Promise<void> {
  if (key === undefined) return;
  await changeRow(tx, 'outbox', key, { endedAt: tx.now });
}

/** Deletes a part that needs no record: a waiting notice, or an edit of a message that was never shown. */
export async function removePart(tx: Tx, key: string): Promise<void> {
  await tx.db.deleteFrom('outbox').where('key', '=', key).execute();
}

/** A part to insert. */
export type NewPart<Content extends StoredContent = OutboundContent> = Part<
  Content,
  'reply' | 'notice' | 'tool'
> & {
  readonly key: string;
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

type PartPlace = {
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

type NewNotice = {
  readonly key: string;
  readonly route: ReplyRoute;
  readonly text: string;
  /** The command that it answers. */
  readonly asked?: AskedCommand | undefined;
  /** Shows the notice in this lane's timeline. The caller has locked the lane. */
  readonly laneKey?: string;
  /** The run that it is about. */
  readonly runId?: string;
};

/** Queues one of Parley's own texts; returns its conversation's key. Safe to repeat: a key is sent once. */
export async function insertNotice(tx: Tx, { text, laneKey, asked, ...notice }: NewNotice): Promise<string> {
  const timeline = laneKey === undefined ? {} : { timeline: { laneKey, seq: await takeSeq(tx, laneKey) } };
  const content = { kind: 'text', text: { text, spans: [] }, ...(asked && { asked }) } as const;
  return insertPart(tx, { ...notice, content, purpose: 'notice', ...timeline });
}

// Changes the text of an earlier part, whether it is still waiting, on its way, or shown.

/** A new text for a part. */
type PartChange = {
  readonly key: string;
  readonly text: FormattedText;
  /** The platform id of the part's message, if an event has named it. */
  readonly messageId?: MessageId | undefined;
};

/**
 * Replaces the part's text and removes its buttons. A part that hasn't been tried yet is sent with the new text; any
 * other is followed by an edit, in the order of the conversation. Returns the conversation to deliver in; undefined
 * when there is no such part. Safe to repeat: a part is changed once.
 */
export async function changePart(tx: Tx, change: PartChange): Promise<string | undefined> {
  const { key, text } = change;
  const known = await readPart(tx, key);
  if (!known) return undefined;
  await lockConversation(tx, known.conversationKey);
  const part = (await readPart(tx, key)) ?? known;
  const isUntried = part.state === 'pending' && part.sendingAt === null;
  // A part on its way keeps its text, since its channel may search for it by that text.
  if (isUntried || part.endedAt !== null) {
    const content = JSON.stringify({ kind: 'text', text } satisfies OutboundContent);
    await changeRow(tx, 'outbox', key, { content });
  }
  if (isUntried) return part.conversationKey;
  const route = withoutQuote(json.route(part.route));
  const { messageId: shown } = change;
  const content = {
    kind: 'edit-part',
    part: key,
    text,
    ...(shown !== undefined && { messageId: shown }),
  } as const;
  return insertPart(tx, { key: `${key}:changed`, route, content, purpose: 'notice' });
}

function readPart(tx: Tx, key: string) {
  return findRow(tx, 'outbox', key, ['state', 'sendingAt', 'endedAt', 'route', 'conversationKey']);
}

/**
 * Returns a row's content as its channel receives it. An edit of a part becomes an edit of that part's message;
 * undefined when the part became no message, so that there is nothing to edit. The part's own row gets the text, too, since
 * timelines show that one, and it had to stay while the part was on its way.
 */
export async function outboundOf(tx: Tx, content: StoredContent): Promise<OutboundContent | undefined> {
  if (content.kind !== 'edit-part') return content;
  const row = await findRow(tx, 'outbox', content.part, ['receipts']);
  const [shown] = json.strings(row?.receipts ?? null);
  const changed = { kind: 'text', text: content.text } satisfies OutboundContent;
  await changeRow(tx, 'outbox', content.part, { content: JSON.stringify(changed) });
  const id = shown === undefined ? content.messageId : messageId(shown);
  return id && { kind: 'edit', messageId: id, text: content.text, buttons: [] };
}
