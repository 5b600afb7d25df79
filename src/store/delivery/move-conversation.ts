import { openAlert } from '../alerts/note-alert.ts';
import type { Tx } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { changeRow, findRow } from '../base/row-by-key.ts';
import { endAskedWait } from './asked-wait.ts';
import { ensureConversation, takePlace } from './insert-part.ts';
import { closePart } from './part-states.ts';
import { isChange } from './tool-target.ts';

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
