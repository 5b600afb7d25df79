/**
 * A sender whose message waits for longer than a moment is notified once: by a line, or by a mark on the message. The row
 * records that (`notifiedAt`) in the transaction that stores the notice, and the notice is dropped if the message no
 * longer waits.
 */

import type { OutboundContent } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { isOpenItem, isOutOfBudget, isUnnotifiedItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, findRow } from '../base/row-access.ts';
import { insertPart } from '../delivery/part.ts';
import { isStillWaiting, waitingNoticeKeyOf } from '../delivery/record-send.ts';
import { markWaiting } from '../rows/mark.ts';
import { lockLanesAndConversations, readableRoute, showMark } from './marks.ts';

/** A waiting message whose sender hasn't been notified yet. */
export type UnnotifiedItem = {
  readonly inboxId: string;
  readonly laneKey: string;
  readonly chatKind: 'dm' | 'group';
  /** Undefined for a damaged row. */
  readonly route: ReplyRoute | undefined;
  /** Absent for an item that isn't a message on the platform, such as a correction. */
  readonly messageId: string | undefined;
};

const page = 200;

/** Reads messages that have waited for longer than `afterMs` without a notice, oldest first. */
export const readUnnotified: StoreQuery<{ readonly afterMs: number }, readonly UnnotifiedItem[]> = {
  query: 'readUnnotified',
  usesClock: true,
  run: async (tx, { afterMs }) => {
    const before = tx.now - afterMs;
    const rows = [...(await unnotified.all(tx, { before })), ...(await withoutRoom.all(tx, { before }))];
    return rows.map(({ id, laneKey, chatKind, route, messageId, kind }) => ({
      inboxId: id,
      laneKey,
      chatKind: chatKind === 'dm' ? 'dm' : 'group',
      route: readableRoute(route),
      messageId: kind === 'message' ? (messageId ?? undefined) : undefined,
    }));
  },
};

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

/**
 * Messages whose runs wait for room that other calls have reserved. The senders of a spent budget's runs were told so
 * when the run paused.
 */
const withoutRoom = prepared((db, of: QueryParams<{ before: number }>) =>
  db
    .selectFrom('runs')
    // SQLite keeps the order of a cross join, so it starts from the few runs that wait.
    .crossJoin('inbox')
    .whereRef('inbox.runId', '=', 'runs.id')
    .innerJoin('lanes', 'lanes.key', 'inbox.laneKey')
    .select(['inbox.id', 'inbox.laneKey', 'inbox.route', 'inbox.messageId', 'inbox.kind', 'lanes.chatKind'])
    .where(isOutOfBudget())
    // As `parkForBudget` writes it.
    .where('runs.budgetWait', 'like', '%"isHeld":true%')
    .where('runs.parkedAt', '<=', of.before)
    .where('inbox.state', '=', 'taken')
    .where('inbox.notifiedAt', 'is', null)
    .orderBy('runs.parkedAt')
    .limit(page),
);

/** The text or mark for the sender of a waiting message. */
export type WaitingNotice = {
  readonly inboxId: string;
  readonly laneKey: string;
  /** Undefined where no notice is sent. */
  readonly content: OutboundContent | undefined;
};

/**
 * Stores notices for the senders of messages that still wait. The parts of one album get one notice, and somebody who
 * was sent a text about one message gets none about the next while the first one waits. Safe to repeat: each message
 * gets one notice.
 */
export const storeWaitingNotices: StoreCommand<{ readonly notices: readonly WaitingNotice[] }, Effects> = {
  name: 'storeWaitingNotices',
  run: async (tx, { notices }) => {
    const effects = noEffects();
    await lockLanesAndConversations(tx, notices);
    for (const notice of notices) await tell(tx, notice, effects);
    return effects;
  },
};

async function tell(tx: Tx, { inboxId, content }: WaitingNotice, effects: Effects): Promise<void> {
  const row = await findRow(tx, 'inbox', inboxId, [
    'id',
    'laneKey',
    'route',
    'bundle',
    'account',
    'senderId',
    'state',
    'runId',
    'notifiedAt',
  ]);
  // Checked here, not in the query: with statistics from when few items waited, PostgreSQL would scan all waiting ones.
  if (row === undefined || row.notifiedAt !== null || !(await isStillWaiting(tx, row))) return;
  const isSaid = content !== undefined && !(await knowsAlready(tx, row, content));
  const notifiedAt = isSaid ? tx.now : 0;
  await changeRow(tx, 'inbox', inboxId, { notifiedAt });
  if (!isSaid) return;
  if (content.kind === 'reaction') {
    await markWaiting(tx, { inboxId, laneKey: row.laneKey, emoji: content.emoji });
    return showMark(tx, { inboxId, canReact: true }, effects);
  }
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
