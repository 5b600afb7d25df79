import type { PartKey } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StepTx, Tx } from '../base/command.ts';
import { conversationKeyOf } from '../base/conversation-key.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { locking } from '../base/row-locks.ts';
import { type ClaimedDelivery, claimDelivery, type DeliveryPolicy, headPart } from './claim-delivery.ts';
import { ensureConversation, maxMoves, type NewPart, writePart } from './insert-part.ts';

export type StoredReply = {
  /** The conversation that somebody has to begin delivering; undefined when there is nothing to begin. */
  readonly waiting: string | undefined;
  /** Claimed for the sender. */
  readonly claimed: ClaimedDelivery | undefined;
  /** Nobody can be reached there: the parts have failed. */
  readonly isUnreachable: boolean;
};

/**
 * Stores the parts of one reply, all to one conversation and stored by no step before, in that
 * conversation's order. With a
 * `sender` the conversation's head part is claimed for it in the same step: one commit less between the
 * answer and its delivery. When nothing stands before the reply, that part is stored as claimed.
 */
export async function insertReply(
  tx: StepTx,
  parts: readonly NewPart[],
  sender: DeliveryPolicy | undefined,
): Promise<StoredReply> {
  const [first] = parts;
  if (!first) return { waiting: undefined, claimed: undefined, isUnreachable: false };
  const { conversation, conversationKey, row, head } = await findConversation(tx, first.route);
  const isUnreachable = row.unreachableAt !== null;
  const isFree = sender !== undefined && !isUnreachable && row.deliveryUntil <= tx.now;
  const isHead = isFree && head === undefined;
  const state = isUnreachable ? 'failed' : 'pending';
  for (const [index, part] of parts.entries()) {
    const place = row.nextPart + index;
    const isClaimed = isHead && index === 0;
    const to = { ...part.route, conversation };
    await writePart(tx, part, { route: to, conversationKey, place, state: isClaimed ? 'sending' : state });
  }
  const taking = { conversationKey, nextPart: row.nextPart + parts.length };
  if (!isHead) await takePlaces.post(tx, taking);
  if (!isFree) return { waiting: conversationKey, claimed: undefined, isUnreachable };
  if (!isHead) return claimAhead(tx, sender, conversationKey);
  const epoch = row.deliveryEpoch + 1;
  await takeAndHold.post(tx, { ...taking, epoch, holder: sender.holder, until: tx.now + sender.leaseMs });
  const { purpose, content, timeline } = first;
  const route = { ...first.route, conversation };
  const delivery = {
    kind: 'part',
    epoch,
    part: { key: first.key as PartKey, route, content },
    attempts: 1,
    purpose,
    ageMs: 0,
    laneKey: timeline?.laneKey,
    mayStandSince: undefined,
    step: 'send',
  } as const;
  return { waiting: undefined, claimed: { conversationKey, delivery }, isUnreachable };
}

/** Something stands before the reply: that is what the sender goes on with. */
async function claimAhead(tx: StepTx, sender: DeliveryPolicy, conversationKey: string): Promise<StoredReply> {
  const delivery = await claimDelivery.run(tx, { ...sender, conversationKey });
  return delivery.kind === 'part'
    ? { waiting: undefined, claimed: { conversationKey, delivery }, isUnreachable: false }
    : { waiting: conversationKey, claimed: undefined, isUnreachable: false };
}

/** Locks the conversation, made when it is new and followed when it has moved, and reads what stands first in it. */
async function findConversation(tx: Tx, route: ReplyRoute, moves = 0) {
  const conversationKey = conversationKeyOf(route);
  let [row, head] = await Promise.all([
    lockedConversation.first(tx, { conversationKey }),
    headPart.first(tx, { conversationKey }),
  ]);
  if (!row) {
    await ensureConversation(tx, conversationKey);
    [row, head] = await Promise.all([
      lockedConversation.one(tx, { conversationKey }),
      headPart.first(tx, { conversationKey }),
    ]);
  }
  if (row.movedTo === null || moves >= maxMoves) {
    return { conversation: route.conversation, conversationKey, row, head };
  }
  return findConversation(
    tx,
    { ...route, conversation: row.movedTo as ReplyRoute['conversation'] },
    moves + 1,
  );
}

const lockedConversation = locking((db, of: QueryParams<{ conversationKey: string }>) =>
  db
    .selectFrom('conversations')
    .select(['nextPart', 'movedTo', 'unreachableAt', 'deliveryEpoch', 'deliveryUntil'])
    .where('key', '=', of.conversationKey),
);

const takePlaces = prepared((db, of: QueryParams<{ conversationKey: string; nextPart: number }>) =>
  db.updateTable('conversations').set({ nextPart: of.nextPart }).where('key', '=', of.conversationKey),
);

type Holding = { conversationKey: string; nextPart: number; epoch: number; holder: string; until: number };

const takeAndHold = prepared((db, of: QueryParams<Holding>) =>
  db
    .updateTable('conversations')
    .set({
      nextPart: of.nextPart,
      deliveryEpoch: of.epoch,
      deliveryHolder: of.holder,
      deliveryUntil: of.until,
    })
    .where('key', '=', of.conversationKey),
);
