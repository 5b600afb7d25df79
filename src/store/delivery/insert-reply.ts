import { ParleyError } from '#contracts/errors.ts';
import type { PartKey } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StepTx, Tx } from '../base/command.ts';
import { conversationKeyOf } from '../base/keys.ts';
import type { QueryParams } from '../base/prepared.ts';
import { changeRow, locking } from '../base/row-access.ts';
import {
  type ClaimedDelivery,
  claimDelivery,
  type DeliveryPolicy,
  headPart,
  holdDelivery,
} from './claim-delivery.ts';
import { ensureConversation, maxMoves, type NewPart, writePart } from './part.ts';

export type StoredReply = {
  /** The conversation whose delivery must be started; undefined when there is nothing to start. */
  readonly waiting: string | undefined;
  /** Claimed for the sender. */
  readonly claimed: ClaimedDelivery | undefined;
  /** The conversation can't be reached, so the parts have failed. */
  readonly isUnreachable: boolean;
};

type ReplyDelivery = {
  readonly sender?: DeliveryPolicy | undefined;
  readonly seen?: Conversation | undefined;
};

/**
 * Stores the parts of one reply in their conversation's order. All parts go to one conversation, and no earlier step
 * has stored them. With a `sender`, the conversation's head part is claimed for it in the same step, which saves a
 * commit between the answer and its delivery. If nothing precedes the reply, its first part is stored as claimed.
 * `seen`: its conversation, if the caller has locked it.
 */
export async function insertReply(
  tx: StepTx,
  parts: readonly NewPart[],
  { sender, seen }: ReplyDelivery,
): Promise<StoredReply> {
  const [first] = parts;
  if (!first) return { waiting: undefined, claimed: undefined, isUnreachable: false };
  const { conversation, conversationKey, row, head } = await findConversation(tx, first.route, seen);
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
  const nextPart = row.nextPart + parts.length;
  if (!isHead) await changeRow(tx, 'conversations', conversationKey, { nextPart });
  if (!isFree) return { waiting: conversationKey, claimed: undefined, isUnreachable };
  if (!isHead) return claimAhead(tx, sender, conversationKey);
  const epoch = row.deliveryEpoch + 1;
  const { holder, claimId: claim = null } = sender;
  const until = tx.now + sender.leaseMs;
  await holdDelivery(tx, { conversationKey, nextPart, epoch, holder, claim, until });
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
    mayHaveArrivedSince: undefined,
    step: 'send',
  } as const;
  return { waiting: undefined, claimed: { conversationKey, delivery }, isUnreachable };
}

/** Claims the part that precedes the reply, which the sender continues with. */
async function claimAhead(tx: StepTx, sender: DeliveryPolicy, conversationKey: string): Promise<StoredReply> {
  const delivery = await claimDelivery.run(tx, { ...sender, conversationKey });
  return delivery.kind === 'part'
    ? { waiting: undefined, claimed: { conversationKey, delivery }, isUnreachable: false }
    : { waiting: conversationKey, claimed: undefined, isUnreachable: false };
}

/** A conversation as found by a reply, and its head part; without a row when it is new. */
export type Conversation = {
  readonly row: ConversationRow | undefined;
  readonly head: Awaited<ReturnType<typeof headPart.first>>;
};

/** Locks the route's conversation and reads its head part, in one round trip. The caller has locked its lanes. */
export async function lockForReply(tx: Tx, route: ReplyRoute): Promise<Conversation> {
  const conversationKey = conversationKeyOf(route);
  const [row, head] = await Promise.all([
    lockedConversation.first(tx, { conversationKey }),
    headPart.first(tx, { conversationKey }),
  ]);
  return { row, head };
}

/** Locks the conversation and reads its head part; makes it when it is new, and follows it when it has moved. */
async function findConversation(tx: Tx, route: ReplyRoute, seen: Conversation | undefined, moves = 0) {
  const conversationKey = conversationKeyOf(route);
  let { row, head } = seen ?? (await lockForReply(tx, route));
  if (!row) {
    await ensureConversation(tx, conversationKey);
    ({ row, head } = await lockForReply(tx, route));
  }
  if (!row) throw new ParleyError('internal', `Conversation ${conversationKey} could not be made.`);
  if (row.movedTo === null || moves >= maxMoves) {
    return { conversation: route.conversation, conversationKey, row, head };
  }
  const next = { ...route, conversation: row.movedTo as ReplyRoute['conversation'] };
  return findConversation(tx, next, undefined, moves + 1);
}

type ConversationRow = NonNullable<Awaited<ReturnType<typeof lockedConversation.first>>>;

const lockedConversation = locking((db, of: QueryParams<{ conversationKey: string }>) =>
  db
    .selectFrom('conversations')
    .select(['nextPart', 'movedTo', 'unreachableAt', 'deliveryEpoch', 'deliveryUntil'])
    .where('key', '=', of.conversationKey),
);
