/** Decides which messages get which mark (`contracts/mark.ts`), and has the outbox show it. */

import type { MessageId } from '#contracts/ids.ts';
import { type MarkSettings, noticeKindOn } from '#contracts/mark.ts';
import { type ReplyRoute, routeOf } from '#contracts/route.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow } from '../base/row-access.ts';
import { forgetMark, queueMark, readShownMark, wantedMark } from '../delivery/mark-part.ts';
import { lockConversations } from '../delivery/part.ts';
import { lockLanes } from '../rows/lane.ts';
import type { WaitingRow } from './waiting-items.ts';

export type TakenMark = { readonly inboxId: string; readonly emoji: string };

type TakeScene = {
  readonly chatKind: string;
  /** If true, all but the last message count as merged into it; otherwise a working run reads them. */
  readonly merges: boolean;
};

type TakenRow = Pick<WaitingRow, 'id' | 'bundle' | 'messageId' | 'target' | 'source' | 'reach'>;

/**
 * Returns the marks of messages that a run takes. The parts of an album are one message; what only continues a message
 * that the run has read, such as a correction, gets none.
 */
export function marksOf(
  rows: readonly TakenRow[],
  { chatKind, merges }: TakeScene,
  settings: MarkSettings,
): readonly TakenMark[] {
  const emoji = merges ? settings.merged : settings.read;
  const firsts = rows.filter(
    ({ id, bundle }) => bundle === null || rows.find((row) => row.bundle === bundle)?.id === id,
  );
  const last = rows.at(-1);
  const isAnswered = (row: TakenRow) => row === last || (row.bundle !== null && row.bundle === last?.bundle);
  const marked = firsts.filter((row) => isMarkable(row, chatKind, settings) && !(merges && isAnswered(row)));
  return emoji === '' ? [] : marked.map(({ id }) => ({ inboxId: id, emoji }));
}

function isMarkable(
  { messageId, target, source, reach }: TakenRow,
  chatKind: string,
  settings: MarkSettings,
): boolean {
  const route = routeOf(target);
  if (messageId === null || route === undefined || source !== 'platform' || reach === 'always') return false;
  const kind = noticeKindOn(settings, route.channel);
  return kind === 'reaction' || (kind === 'line' && chatKind !== 'dm');
}

/** A message whose mark isn't what it is to be. */
export type UnsettledMark = {
  readonly inboxId: string;
  readonly laneKey: string;
  /** Undefined for a message that was removed, or a damaged row. */
  readonly route: ReplyRoute | undefined;
};

/** A page per sweep; the rest follows with the next one. */
const page = 200;

/** Reads the messages whose mark is to change, oldest first. */
export const readUnsettledMarks: StoreQuery<Record<never, never>, readonly UnsettledMark[]> = {
  query: 'readUnsettledMarks',
  run: async (tx) => {
    const rows = await unsettled.all(tx, {});
    return rows.map(({ route, ...row }) => ({ ...row, route: readableRoute(route) }));
  },
};

/** Reads the route, or undefined if it is damaged: one such row must not keep other senders from being notified. */
export function readableRoute(text: string | null): ReplyRoute | undefined {
  try {
    return json.route(text);
  } catch {
    return undefined;
  }
}

const unsettled = prepared((db, _: QueryParams<Record<never, never>>) =>
  db
    .selectFrom('marks')
    .leftJoin('inbox', 'inbox.id', 'marks.inboxId')
    .leftJoin('runs', 'runs.id', 'inbox.runId')
    .select(['marks.inboxId', 'marks.laneKey', 'inbox.route'])
    .where((eb) =>
      eb.or([
        eb(wantedMark(), 'is', null),
        eb('marks.told', 'is', null),
        eb(wantedMark(), '<>', eb.ref('marks.told')),
      ]),
    )
    .orderBy('marks.inboxId')
    .limit(page),
);

/** A message whose mark is to change, and whether its network has reactions. */
export type MarkToShow = {
  readonly inboxId: string;
  readonly laneKey: string;
  readonly canReact: boolean;
};

/**
 * Has the outbox show what each message is to bear. A message whose mark is just being changed has its turn later.
 * Safe to repeat: a mark that is right stays.
 */
export const showMarks: StoreCommand<{ readonly marks: readonly MarkToShow[] }, Effects> = {
  name: 'showMarks',
  run: async (tx, { marks }) => {
    const effects = noEffects();
    await lockLanesAndConversations(tx, marks);
    for (const mark of marks) await showMark(tx, mark, effects);
    return effects;
  },
};

type ItemPlace = { readonly inboxId: string; readonly laneKey: string };

/** Locks the items' lanes, then the conversations in which something is to be sent about them. */
export async function lockLanesAndConversations(tx: Tx, items: readonly ItemPlace[]): Promise<void> {
  await lockLanes(tx, [...new Set(items.map(({ laneKey }) => laneKey))]);
  if (tx.dialect !== 'postgres' || items.length < 2) return;
  const ids = items.map(({ inboxId }) => inboxId);
  const rows = await tx.db.selectFrom('inbox').select('conversationKey').where('id', 'in', ids).execute();
  const keys = rows.map(({ conversationKey }) => conversationKey);
  await lockConversations(tx, keys);
}

const markedItem = prepared((db, of: QueryParams<{ inboxId: string }>) =>
  db
    .selectFrom('marks')
    .leftJoin('inbox', 'inbox.id', 'marks.inboxId')
    .leftJoin('runs', 'runs.id', 'inbox.runId')
    .select(['inbox.route', 'inbox.messageId'])
    .select(wantedMark().as('wanted'))
    .where('marks.inboxId', '=', of.inboxId),
);

/** Has the outbox show the message's mark. The caller holds the locks of its lane and its conversation. */
export async function showMark(
  tx: Tx,
  { inboxId, canReact }: Omit<MarkToShow, 'laneKey'>,
  effects: Effects,
): Promise<void> {
  const item = await markedItem.first(tx, { inboxId });
  if (item === undefined) return;
  const shown = await readShownMark(tx, inboxId);
  if (shown.kind === 'busy') return;
  const { route, messageId } = item;
  const wanted = (canReact && item.wanted) || undefined;
  const isIdle = wanted === undefined && shown.emoji === undefined && !shown.isQueued;
  if (isIdle || messageId === null || route === null) return forget(tx, inboxId);
  const change = { inboxId, wanted, shown: shown.emoji, route: json.route(route) };
  // The platform's own id, which the store keeps as plain text.
  const conversation = await queueMark(tx, { ...change, messageId: messageId as MessageId });
  if (conversation !== undefined) effects.deliveries.push(conversation);
  if (wanted === undefined) await deleteMark(tx, inboxId);
  else await changeRow(tx, 'marks', inboxId, { told: wanted });
}

async function forget(tx: Tx, inboxId: string): Promise<void> {
  await forgetMark(tx, inboxId);
  await deleteMark(tx, inboxId);
}

async function deleteMark(tx: Tx, inboxId: string): Promise<void> {
  await tx.db.deleteFrom('marks').where('inboxId', '=', inboxId).execute();
}
