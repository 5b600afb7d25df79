/**
 * The only way into a lane, for platform events, the API and everything else that has something for an agent. The row
 * takes its place, the active run is notified or aborted, depending on the lane's mode and the item's reach, and the
 * lane is woken.
 */
import { ParleyError } from '#contracts/errors.ts';
import type { ItemSource, Reach } from '#contracts/inbox-item.ts';
import type { Authority } from '#contracts/outcome.ts';
import { type ReplyRoute, type RunTarget, routeOf } from '#contracts/route.ts';
import { noteOwner } from '../alerts/owner-route.ts';
import type { StepTx, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { type InboxContent, json, targetText } from '../base/json.ts';
import { conversationKeyOf, type LaneRef, type LaneSpec } from '../base/keys.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { insertItem } from '../rows/item.ts';
import { type Lane, lockLane, makeLane, takeSeqOfArrival } from '../rows/lane.ts';
import { cancelRun } from '../waits/parked.ts';
import { senderRef } from './item-change.ts';
import { dropRetained } from './retained-steers.ts';
import { putNewestAhead } from './waiting-items.ts';

/** The longest a lane waits for a file before it continues without it, ms. */
export const fetchWaitMs = 20_000;

/** An item that Parley itself puts into a lane. */
export type InnerItem = {
  readonly id: string;
  readonly source: Exclude<ItemSource, 'platform'>;
  /** Unique, `<source>:<id>`: repeats under one key return the same row. */
  readonly sourceKey: string;
  readonly reach: Reach;
  /** Becomes the id of the run that the item begins. */
  readonly reservedRunId?: string;
  readonly target: RunTarget;
  readonly authority: Authority;
  readonly content: InboxContent;
};

/** An item's row as stored by the first call under its source key; `enqueuedAt` in ms. */
export type EnqueuedItem = {
  readonly id: string;
  readonly laneKey: string;
  readonly reservedRunId: string | undefined;
  readonly text: string;
  readonly digest: string | undefined;
  readonly enqueuedAt: number;
};

/**
 * Puts the item into its lane and returns the row under its source key; a repeat adds nothing. The lane's cap never
 * drops the item, and no person can cancel it as their own. Throws `invalid_input` when the lane doesn't exist. The
 * caller dispatches the effects after the commit.
 */
export async function enqueueItem(
  tx: StepTx,
  ref: LaneRef,
  item: InnerItem,
  effects: Effects,
): Promise<EnqueuedItem> {
  const known = await readEnqueued(tx, item.sourceKey);
  if (known) return known;
  const lane = (await lockLane(tx, ref.key)) ?? ('class' in ref ? await makeLane(tx, ref) : undefined);
  if (!lane) throw new ParleyError('invalid_input', `There is no session ${ref.key}.`);
  const route = routeOf(item.target);
  const placed: PlacedItem = {
    ...item,
    kind: item.content.command === undefined ? 'message' : 'command',
    account: item.source,
    senderId: '',
    conversationKey: route ? conversationKeyOf(route) : '',
    bundle: null,
    isHeld: false,
    isFetching: false,
    dueAt: tx.now,
  };
  await placeItem(tx, lane, placed, effects);
  // The first row counts, even if it is in another lane or another process stored it.
  const enqueued = await readEnqueued(tx, item.sourceKey);
  if (!enqueued) throw new ParleyError('internal', `Item ${item.sourceKey} was not stored.`);
  return enqueued;
}

/** Reads the row under a source key; undefined if there is none. */
export async function readEnqueued(tx: Tx, sourceKey: string): Promise<EnqueuedItem | undefined> {
  const row = await enqueuedItem.first(tx, { sourceKey });
  if (!row) return undefined;
  const { content, reservedRunId, createdAt, ...rest } = row;
  const { text, digest } = json.content(content);
  return {
    ...rest,
    ...{ reservedRunId: reservedRunId ?? undefined, text, digest },
    enqueuedAt: createdAt,
  };
}

const enqueuedItem = prepared((db, of: QueryParams<{ sourceKey: string }>) =>
  db
    .selectFrom('inbox')
    .select(['id', 'laneKey', 'reservedRunId', 'content', 'createdAt'])
    .where('sourceKey', '=', of.sourceKey),
);

/** An item with everything that decides when it is taken. */
export type PlacedItem = {
  readonly id: string;
  readonly kind: 'message' | 'command';
  readonly source: ItemSource;
  readonly sourceKey?: string;
  readonly reach: Reach;
  readonly reservedRunId?: string;
  readonly target: RunTarget;
  readonly authority: string;
  readonly content: InboxContent;
  readonly account: string;
  readonly conversationKey: string;
  readonly messageId?: string | undefined;
  /** Empty when no person sent it. */
  readonly senderId: string;
  readonly bundle: string | null;
  /** True while its bundle's mention gate is undecided, so that it can't be taken yet. */
  readonly isHeld: boolean;
  readonly isFetching: boolean;
  readonly dueAt: number;
};

/** Inserts the row, notifies or aborts the active run, and wakes the lane. The caller holds the lane's lock. */
export async function placeItem(tx: StepTx, lane: Lane, item: PlacedItem, effects: Effects): Promise<void> {
  const { id, kind, source, reach, account, conversationKey, senderId, authority, bundle, dueAt } = item;
  await takeSeqOfArrival(tx, lane.key);
  if (source === 'platform') await noteOwner(tx, lane, authority);
  const row = {
    ...{ id, kind, source, reach, account, conversationKey, senderId, authority, bundle, dueAt },
    laneKey: lane.key,
    rank: 0,
    isHeld: item.isHeld,
    messageId: item.messageId ?? null,
    sourceKey: item.sourceKey ?? null,
    reservedRunId: item.reservedRunId ?? null,
    route: targetText(item.target),
    content: JSON.stringify(item.content),
    isFetching: item.isFetching ? 1 : 0,
    // An item that no person sent needs no waiting notice.
    notifiedAt: source === 'platform' ? null : 0,
    createdAt: tx.now,
  };
  if (!(await insertItem(tx, row))) return;
  if (item.isHeld) return;
  if (item.isFetching) effects.fetches.push(id);
  await touchActiveRun(tx, lane, item, effects);
  // The active run checks for waiting items before it closes; if its process is gone, the sweep finds the lane.
  if (lane.runId === null || lane.leaseUntil <= tx.now)
    effects.wakes.push({ laneKey: lane.key, class: lane.class, delayMs: Math.max(0, dueAt - tx.now) });
}

/** Aborts the active run for `interrupt` and a fresh start; otherwise only notifies it that something arrived. */
async function touchActiveRun(tx: StepTx, lane: Lane, item: PlacedItem, effects: Effects): Promise<void> {
  if (lane.runId === null) return;
  effects.arrivals.push(lane.key);
  if (item.kind === 'command' && !item.content.command?.abortsRun) return;
  if (item.kind === 'command') {
    // A direct conversation belongs to one person, whichever of their accounts they write from.
    const isTheirs = (row: { readonly account: string; readonly senderId: string }) =>
      lane.chatKind === 'dm' || (row.account === item.account && row.senderId === item.senderId);
    await dropRetained(tx, lane.runId, isTheirs);
    return cancelRun(tx, lane, { reason: 'reset', effects });
  }
  if (lane.mode !== 'interrupt' || item.reach !== 'mode') return;
  await putNewestAhead(tx, lane, { id: item.id, by: senderRef(item) });
  await cancelRun(tx, lane, { reason: 'interrupt', effects });
}

/** An item to insert. */
export type NewItem = {
  readonly id: string;
  readonly kind: 'message' | 'command';
  readonly lane: LaneSpec;
  readonly route: ReplyRoute;
  readonly authority: Authority;
  readonly content: InboxContent;
  readonly bundle?: Bundle;
  /**
   * How long after a message a forward or an album of the same sender still belongs to it, and a text to an album, ms.
   * Absent: it never does.
   */
  readonly joinMs?: number;
  /**
   * Whether it passes the mention gate on its own. If it doesn't, it is remembered as context, unless another item of
   * its bundle passes.
   */
  readonly passesGate: boolean;
  /** How many unmentioned messages are remembered per lane. */
  readonly contextLimit: number;
};

/** Parts that belong together: an album, or a text that the client has split. */
export type Bundle = {
  readonly name: string;
  /** How long to wait for more parts after the last one, ms. */
  readonly windowMs: number;
  /** The name is used for one message only, so a part that comes after the others were taken still belongs to it. */
  readonly isOneMessage?: true;
};
