import { closeAlert, openAlert } from '../alerts/alert.ts';
import type { Tx } from '../base/command.ts';
import { isOpenItem, isOpenPart } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, findRow, oneOf } from '../base/row-access.ts';
import { endItems, endSummaries } from '../rows/item.ts';
import { tryLockLanes } from '../rows/lane.ts';
import { moveBindings } from './bindings.ts';
import { amendOutcome, endAskedWait } from './end-part.ts';
import { isMarkPart } from './mark-part.ts';
import { closePart, ensureConversation, failUnreachable, removePart, takePlace } from './part.ts';
import { isChange } from './tool-send.ts';

export type Move = {
  readonly fromKey: string;
  readonly from: string;
  readonly toKey: string;
  readonly to: string;
};

/** Moves a conversation's pending parts to its new id. */
export async function moveConversation(tx: Tx, { fromKey, from, toKey, to }: Move): Promise<void> {
  await ensureConversation(tx, fromKey);
  await ensureConversation(tx, toKey);
  const [old, next] = [await readPlace(tx, fromKey), await readPlace(tx, toKey)];
  // Two ids that name each other would pass pending parts back and forth forever.
  if (fromKey === toKey || next?.movedTo === from) return;
  if (old?.movedTo !== to) {
    await openAlert(tx, { kind: 'conversation-moved', subject: fromKey, values: { to } });
    await changeRow(tx, 'conversations', fromKey, { movedTo: to });
    await moveBindings(tx, fromKey, toKey);
    await changeRow(tx, 'conversations', toKey, {
      canonicalId: old?.canonicalId ?? from,
      activation: old?.activation ?? null,
      admittedBy: old?.admittedBy ?? null,
    });
  }
  const parts = await tx.db
    .selectFrom('outbox')
    .select(['key', 'route', 'answer', 'content', 'purpose'])
    .where('conversationKey', '=', fromKey)
    .where(isOpenPart())
    .where('state', '=', 'pending')
    .orderBy('place')
    .execute();
  const isMoved = new Set<string>();
  for (const part of parts) {
    // Its message isn't there.
    if (isMarkPart(part.key)) {
      await removePart(tx, part.key);
      continue;
    }
    if (part.purpose === 'tool' && isChange(json.outbound(part.content))) {
      await closePart(tx, part.key, idsAreGone);
      continue;
    }
    const { route, place: last, conversationKey } = await takePlace(tx, json.route(part.route));
    const place = (await placeBeforeRest(tx, { part, conversationKey, isMoved })) ?? last;
    isMoved.add(part.key);
    await changeRow(tx, 'outbox', part.key, {
      route: JSON.stringify(route),
      place,
      conversationKey,
      dueAt: tx.now,
    });
  }
  await endAskedWait(tx, fromKey, true);
}

/** The end of a change to a message, whose id belongs to a different message in the new conversation. */
const idsAreGone = { state: 'failed', problem: 'its group has a new id now', receipts: null } as const;

type MovedPart = {
  readonly part: { readonly answer: string | null };
  readonly conversationKey: string;
  /** Keys of the parts that this move has already moved. */
  readonly isMoved: ReadonlySet<string>;
};

/** Returns a place for a part that was in flight during the move, so that it still precedes the rest of its answer. */
async function placeBeforeRest(
  tx: Tx,
  { part, conversationKey, isMoved }: MovedPart,
): Promise<number | undefined> {
  if (part.answer === null) return undefined;
  const rest = await tx.db
    .selectFrom('outbox')
    .select(['key', 'place'])
    .where('conversationKey', '=', conversationKey)
    .where(isOpenPart())
    .where('answer', '=', part.answer)
    .orderBy('place')
    .execute();
  return rest.some(({ key }) => isMoved.has(key)) ? undefined : rest[0] && rest[0].place - 1;
}

function readPlace(tx: Tx, key: string) {
  return findRow(tx, 'conversations', key, ['canonicalId', 'activation', 'admittedBy', 'movedTo']);
}

/** Reads the platform id under which a conversation continues. */
export async function movedTo(tx: Tx, key: string): Promise<string | undefined> {
  return (await readPlace(tx, key))?.movedTo ?? undefined;
}

/**
 * Marks a conversation from which the bot was blocked or removed: its waiting items and pending parts end with a
 * recorded outcome. The caller has locked the lanes that `readWaitingLanes` returned. A lane added since is skipped if
 * another step has locked it: its items are answered, and the answer is recorded as failed.
 */
export async function markUnreachable(tx: Tx, key: string): Promise<void> {
  const lanes = await tryLockLanes(tx, await readWaitingLanes(tx, [key]));
  await changeRow(tx, 'conversations', key, { unreachableAt: tx.now });
  await openAlert(tx, { kind: 'conversation-unreachable', subject: key });
  if (lanes.length > 0) await endWaiting(tx, key, lanes);
  const ended = await failUnreachable(tx, key);
  await endAskedWait(tx, key, true);
  for (const { runId, answer } of new Map(ended.map((part) => [part.answer, part])).values()) {
    if (runId !== null && answer !== null) await amendOutcome(tx, { runId, answer });
  }
}

async function endWaiting(tx: Tx, key: string, lanes: readonly string[]): Promise<void> {
  const open = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('conversationKey', '=', key)
    .where('laneKey', 'in', lanes)
    .where(isOpenItem())
    .execute();
  const end = { outcome: 'failed', outcomeReason: 'unreachable' } as const;
  await endItems(
    tx,
    open.map(({ id }) => id),
    end,
  );
  const isTheirs = ({ conversationKey }: { readonly conversationKey: string }) => conversationKey === key;
  const rows = tx.db.selectFrom('lanes').select(['key', 'overflow']).where('key', 'in', lanes);
  for (const lane of await rows.where('overflow', 'is not', null).execute())
    await endSummaries(tx, lane, { isTheirs, end });
}

/** Reads the lanes with waiting items of the conversations. */
export async function readWaitingLanes(tx: Tx, keys: readonly string[]): Promise<readonly string[]> {
  if (keys.length === 0) return [];
  const lanes = await tx.db
    .selectFrom('inbox')
    .select('laneKey')
    .distinct()
    .where('conversationKey', 'in', keys)
    .where(isOpenItem())
    .execute();
  return lanes.map(({ laneKey }) => laneKey);
}

/** Returns those of the conversations that can't be reached. */
export async function readUnreachable(tx: Tx, keys: readonly string[]): Promise<readonly string[]> {
  const rows = await unreachable.all(tx, { keys: JSON.stringify(keys) });
  return rows.map(({ key }) => key);
}

const unreachable = prepared((db, of: QueryParams<{ keys: string }>, dialect) =>
  db
    .selectFrom('conversations')
    .select('key')
    .where('key', ...oneOf(of.keys, dialect))
    .where('unreachableAt', 'is not', null),
);

/**
 * Marks the conversation as reachable, since somebody has written in it. Returns false when it already was. Otherwise
 * its row is locked from then on, so the caller must already have locked every lane that it needs.
 */
export async function markReachable(tx: Tx, key: string): Promise<boolean> {
  if ((await clear.run(tx, { key })) === 0) return false;
  await closeAlert(tx, { kind: 'conversation-unreachable', subject: key });
  return true;
}

const clear = prepared((db, of: QueryParams<{ key: string }>) =>
  db
    .updateTable('conversations')
    .set({ unreachableAt: null })
    .where('key', '=', of.key)
    .where('unreachableAt', 'is not', null),
);
