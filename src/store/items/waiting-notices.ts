/**
 * Who waits for longer than a moment is told once. The row says that it happened (`notifiedAt`), in the
 * transaction that stores what is said; what is said is dropped when the message waits no more.
 */

import type { OutboundContent } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { isOpenItem, isUnnotifiedItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, findRow } from '../base/row-by-key.ts';
import { insertPart, lockConversations } from '../delivery/insert-part.ts';
import { waitingNoticeKeyOf } from '../delivery/waiting-notice-part.ts';
import { lockLanes } from '../rows/lane-row.ts';

/** A message whose sender has heard nothing yet. */
export type UnnotifiedItem = {
  readonly inboxId: string;
  readonly laneKey: string;
  readonly chatKind: 'dm' | 'group';
  /** Undefined for a row that something has damaged. */
  readonly route: ReplyRoute | undefined;
  /** Absent for what is no message of its own on the platform: a correction, say. */
  readonly messageId: string | undefined;
};

const page = 200;

/** Messages that have waited for longer than `afterMs` without a word, the oldest first. */
export const readUnnotified: StoreQuery<{ readonly afterMs: number }, readonly UnnotifiedItem[]> = {
  query: 'readUnnotified',
  usesClock: true,
  run: async (tx, { afterMs }) => {
    const rows = await unnotified.all(tx, { before: tx.now - afterMs });
    return rows.map(({ id, laneKey, chatKind, route, messageId, kind }) => ({
      inboxId: id,
      laneKey,
      chatKind: chatKind === 'dm' ? 'dm' : 'group',
      route: readableRoute(route),
      messageId: kind === 'message' ? (messageId ?? undefined) : undefined,
    }));
  },
};

/** One row that can't be read must not keep the others from being told. */
function readableRoute(text: string | null): ReplyRoute | undefined {
  try {
    return json.route(text);
  } catch {
    return undefined;
  }
}

const unnotified = prepared((db, of: QueryParams<{ before: number }>) =>
  db
    .selectFrom('inbox')
    .innerJoin('lanes', 'lanes.key', 'inbox.laneKey')
    .select(['inbox.id', 'inbox.laneKey', 'inbox.route', 'inbox.messageId', 'inbox.kind', 'lanes.chatKind'])
    .where(isUnnotifiedItem())
    .where('inbox.createdAt', '<=', of.before)
    .orderBy('inbox.createdAt')
    .limit(page),
);

/** The words, or the reaction, for the sender of a message that waits. */
export type WaitingNotice = {
  readonly inboxId: string;
  readonly laneKey: string;
  /** Undefined where nothing is said. */
  readonly content: OutboundContent | undefined;
};

/**
 * Tells the senders of messages that still wait. The parts of one album get one notice, and somebody who has
 * been sent a line about one message gets no line about the next while the first one waits. Safe to repeat:
 * each message gets one notice.
 */
export const storeWaitingNotices: StoreCommand<{ readonly notices: readonly WaitingNotice[] }, Effects> = {
  name: 'storeWaitingNotices',
  run: async (tx, { notices }) => {
    const effects = noEffects();
    await lockLanes(tx, [...new Set(notices.map(({ laneKey }) => laneKey))]);
    await lockConversations(tx, await conversationsOf(tx, notices));
    for (const notice of notices) await tell(tx, notice, effects);
    return effects;
  },
};

async function conversationsOf(tx: Tx, notices: readonly WaitingNotice[]): Promise<readonly string[]> {
  if (tx.dialect !== 'postgres' || notices.length < 2) return [];
  const ids = notices.map(({ inboxId }) => inboxId);
  const rows = await tx.db.selectFrom('inbox').select('conversationKey').where('id', 'in', ids).execute();
  return rows.map(({ conversationKey }) => conversationKey);
}

async function tell(tx: Tx, { inboxId, content }: WaitingNotice, effects: Effects): Promise<void> {
  const row = await findRow(tx, 'inbox', inboxId, [
    'id',
    'laneKey',
    'route',
    'bundle',
    'account',
    'senderId',
    'state',
    'notifiedAt',
  ]);
  // Judged here: by statistics from when little waited, PostgreSQL would read all that waits to find this one.
  if (row?.state !== 'waiting' || row.notifiedAt !== null) return;
  const isSaid = content !== undefined && !(await knowsAlready(tx, row, content));
  const notifiedAt = isSaid ? tx.now : 0;
  await changeRow(tx, 'inbox', inboxId, { notifiedAt });
  if (!isSaid) return;
  const part = {
    key: waitingNoticeKeyOf(inboxId),
    route: json.route(row.route),
    content,
    purpose: 'notice',
  } as const;
  effects.deliveries.push(await insertPart(tx, part));
}

type Told = {
  readonly laneKey: string;
  readonly bundle: string | null;
  readonly account: string;
  readonly senderId: string;
};

async function knowsAlready(tx: Tx, row: Told, content: OutboundContent): Promise<boolean> {
  const others = await tx.db
    .selectFrom('inbox')
    .select(['bundle', 'account', 'senderId'])
    .where('laneKey', '=', row.laneKey)
    .where(isOpenItem())
    .where('state', '=', 'waiting')
    .where('notifiedAt', '>', 0)
    .execute();
  return others.some(
    (other) =>
      (row.bundle !== null && other.bundle === row.bundle) ||
      (content.kind === 'text' && other.account === row.account && other.senderId === row.senderId),
  );
}
