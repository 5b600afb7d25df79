import type { Kysely } from 'kysely';
import { longestWaitMs } from '#channel-kit/remote-number.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { PartKey } from '#contracts/ids.ts';
import type { Outbound } from '#contracts/outbound.ts';
import type { StoreCommand, Tx } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, findRow, locking } from '../base/row-access.ts';
import type { Tables } from '../base/tables.ts';
import { lockLanes, tryLockLanes } from '../rows/lane.ts';
import { readWaitingLanes } from './conversation.ts';
import { type AskedPart, endPart, readAskedWait, type SendOutcome } from './end-part.ts';
import { type ExpiryLimits, expirePart, hasExpired } from './expire-part.ts';
import { callOf, dropStaleMark, isMarkPart } from './mark-part.ts';
import { beginSending, firstRepeat, outboundOf, removePart } from './part.ts';
import { isObsolete, recordSend } from './record-send.ts';
import { isChange } from './tool-send.ts';

/** How a channel's parts are delivered; times in ms. */
export type DeliveryPolicy = {
  readonly holder: string;
  /** Identifies the commit that may claim. The holder begins no call before that commit has returned. */
  readonly claimId?: string;
  readonly leaseMs: number;
  /** How long the platform recognizes a repeat by its key; 0 = never. */
  readonly repeatSafeMs: number;
  /** Whether the platform can be asked if a message arrived. */
  readonly canLookUp?: boolean;
  /** Whether a new reaction of the bot replaces the one that a message bears. */
  readonly showsOneReaction?: boolean | undefined;
  /** The owner has chosen to repeat sends whose result is unknown. */
  readonly resendUnknown: boolean;
  /** Ages at which parts are given up; absent: never. */
  readonly expireMs?: ExpiryLimits;
};

/** The next step for a conversation that is claimed. */
export type Delivery =
  | {
      readonly kind: 'part';
      readonly epoch: number;
      readonly part: Outbound;
      readonly attempts: number;
      readonly purpose: string;
      /** Its age when it was claimed, ms. */
      readonly ageMs: number;
      /** The lane whose timeline contains it. */
      readonly laneKey: string | undefined;
      /** When an earlier attempt that may have arrived began. */
      readonly mayHaveArrivedSince: number | undefined;
      /** Whether to send it, or to look for the earlier attempt first. */
      readonly step: 'send' | 'look-up';
    }
  | { readonly kind: 'busy'; readonly delayMs: number }
  | { readonly kind: 'later'; readonly delayMs: number }
  | { readonly kind: 'empty' };

/** A delivery claimed by a commit in addition to its main effect. */
export type ClaimedDelivery = { readonly conversationKey: string; readonly delivery: Delivery };

export type DeliveryClaim = DeliveryPolicy & {
  readonly conversationKey: string;
  /** Ids of this holder's failed commits, which may have claimed the conversation. */
  readonly unanswered?: readonly string[];
};

/**
 * Step 10, deliver: claims the conversation's head part under a lease and marks it `sending`, all committed before the
 * platform is called. A part found in `sending` belongs to a holder that is gone, and a waiting part with a `sendingAt`
 * was cut off; either may have arrived. Such a part is repeated if that is safe (the platform recognizes the repeat, or
 * the part only changes an existing message), else looked up, else it becomes `unknown`. A claim whose answer never
 * reached its holder is taken over immediately, since no call was begun under it.
 */
export const claimDelivery: StoreCommand<DeliveryClaim, Delivery> = {
  name: 'claimDelivery',
  run: async (tx, input) => {
    const row = await lockedConversation.first(tx, input);
    if (!row) return { kind: 'empty' };
    const { deliveryUntil: until, deliveryClaim: claim } = row;
    const isUnanswered = claim !== null && input.unanswered?.includes(claim) === true;
    if (until > tx.now && !isUnanswered) return { kind: 'busy', delayMs: until - tx.now };
    const head = { ...input, epoch: row.deliveryEpoch + 1 };
    const first = await headPart.first(tx, head);
    return claimPart(tx, head, first && isUnanswered ? asUnclaimed(first) : first);
  },
};

/** The result of a delivery attempt. */
export type RecordDeliveryInput = DeliveryPolicy & {
  readonly conversationKey: string;
  readonly epoch: number;
  readonly partKey: string;
  /** As claimed. */
  readonly attempts?: number;
  /** As claimed: when an earlier attempt that may have arrived began. */
  readonly mayHaveArrivedSince?: number | undefined;
  readonly result: SendOutcome;
  /** False when the holder is about to stop and leaves the conversation to another one. */
  readonly claimsNext: boolean;
};

/**
 * Records the result of the part's attempt and claims the next part. Throws `stale_epoch` when another holder has the
 * lease. Safe to repeat: a result counts once, however the part has been changed for its next attempt.
 */
export const recordDelivery: StoreCommand<RecordDeliveryInput, Delivery> = {
  name: 'recordDelivery',
  run: async (tx, input) => {
    await lockReached(tx, input);
    const [row, asked, next] = await Promise.all([
      lockedConversation.first(tx, input),
      readAskedWait(tx, input.partKey),
      nextPart.first(tx, input),
    ]);
    if (row?.deliveryEpoch !== input.epoch) {
      throw new ParleyError(
        'stale_epoch',
        `Another worker now delivers conversation ${input.conversationKey}.`,
      );
    }
    const isRecorded = isAhead(input, asked);
    if (!isRecorded) await recordSend(tx, input, asked);
    if (!input.claimsNext) return leave(tx, input, { kind: 'empty' });
    // Any other result may have changed which part is next.
    const head = input.result.kind === 'sent' ? next : await headPart.first(tx, input);
    return claimPart(tx, input, head && asUnclaimed(head, isRecorded ? input : undefined));
  },
};

/** Says whether the result is already recorded: by a commit whose answer was lost, the part has moved on. */
function isAhead({ attempts }: RecordDeliveryInput, part: AskedPart | undefined): boolean {
  return attempts !== undefined && (part?.state !== 'sending' || part.attempts !== attempts);
}

/**
 * Locks the lanes that the result may affect, before the conversation, as every step of a lane does: the agent learns
 * about a failure, and the waiting messages of a person who has blocked the bot end.
 */
async function lockReached(tx: Tx, { conversationKey, partKey, result }: RecordDeliveryInput): Promise<void> {
  if (tx.dialect !== 'postgres' || result.kind === 'sent' || result.kind === 'retry') return;
  const part = await findRow(tx, 'outbox', partKey, ['laneKey']);
  const own = part?.laneKey ? [part.laneKey] : [];
  await lockLanes(tx, [...own, ...(await readWaitingLanes(tx, [conversationKey]))]);
}

const lockedConversation = locking((db, of: QueryParams<{ conversationKey: string }>) =>
  db
    .selectFrom('conversations')
    .select(['deliveryEpoch', 'deliveryUntil', 'deliveryClaim'])
    .where('key', '=', of.conversationKey),
);

type Head = DeliveryPolicy & { readonly conversationKey: string; readonly epoch: number };

/**
 * Frees a part in `sending` whose claim never reached its holder, so that nothing has begun to send it. Either the
 * claim's commit got no answer, or an earlier commit that recorded `recorded` had already claimed this part as the next
 * one. A repeated attempt isn't freed, since an earlier send may have arrived.
 */
function asUnclaimed(part: HeadPart, recorded?: RecordDeliveryInput): HeadPart {
  // A mark comes after all other parts, so a process that is gone may have begun to send it.
  if (part.state !== 'sending' || isMarkPart(part.key)) return part;
  // The commit that recorded its result has claimed it again.
  const before = { attempts: part.attempts - 1, sendingAt: recorded?.mayHaveArrivedSince ?? null };
  if (part.key === recorded?.partKey) return { ...part, state: 'pending', ...before };
  return part.attempts >= firstRepeat ? part : { ...part, state: 'pending', attempts: 0, sendingAt: null };
}

/** Claims the part if it is to be sent now, or else the next one that is. */
async function claimPart(tx: Tx, head: Head, first: HeadPart | undefined): Promise<Delivery> {
  for (let part = first; ; part = await headPart.first(tx, head)) {
    if (!part) return leave(tx, head, { kind: 'empty' });
    const isMark = isMarkPart(part.key);
    if (isMark && (await dropStaleMark(tx, part, head))) continue;
    if (await isObsolete(tx, part.key)) {
      await removePart(tx, part.key);
      continue;
    }
    if (!isMark && head.expireMs && hasExpired(part, { limits: head.expireMs, now: tx.now })) {
      if (!(await tryLockLane(tx, part))) return leave(tx, head, { kind: 'later', delayMs: lockedLaneMs });
      await expirePart(tx, { ...part, conversationKey: head.conversationKey });
      continue;
    }
    const delayMs = part.dueAt - tx.now;
    // No part has to wait longer: a later time was stored by a wrong clock.
    if (part.state === 'pending' && delayMs > 0 && delayMs <= longestWaitMs)
      return leave(tx, head, { kind: 'later', delayMs });
    const stored = await outboundOf(tx, json.outbound(part.content));
    const content = stored && callOf(stored, head);
    if (content === undefined) {
      await removePart(tx, part.key);
      continue;
    }
    const step = stepFor(tx, head, { ...part, content });
    if (step === 'give-up') {
      if (!(await tryLockLane(tx, part))) return leave(tx, head, { kind: 'later', delayMs: lockedLaneMs });
      const problem = part.state === 'sending' ? 'interrupted while sending' : part.problem;
      await endPart(tx, { key: part.key, state: 'unknown', ...(problem !== null && { problem }) });
      continue;
    }
    const attempts = step === 'send' ? part.attempts + 1 : Math.max(part.attempts, firstRepeat);
    await beginSending(tx, part.key, { sendingAt: part.sendingAt ?? tx.now, attempts });
    await holdDelivery(tx, { ...head, claim: head.claimId ?? null, until: tx.now + head.leaseMs });
    return {
      kind: 'part',
      epoch: head.epoch,
      part: { key: part.key as PartKey, route: json.route(part.route), content },
      attempts,
      purpose: part.purpose,
      ageMs: tx.now - part.createdAt,
      laneKey: part.laneKey ?? undefined,
      mayHaveArrivedSince: part.sendingAt ?? undefined,
      step,
    };
  }
}

/** Locks the lane in which the agent learns about the part's end; lanes precede conversations in the lock order. */
async function tryLockLane(tx: Tx, { laneKey }: Pick<HeadPart, 'laneKey'>): Promise<boolean> {
  return laneKey === null || (await tryLockLanes(tx, [laneKey])).length > 0;
}

/** How long to wait for a lane that a step has locked, ms; steps take a few milliseconds. */
const lockedLaneMs = 50;

/** The first open part in a conversation's order; previews aren't part of the order. */
export const headPart = prepared((db, of: QueryParams<{ conversationKey: string }>) =>
  partsOf(db, of).limit(1),
);

type HeadPart = NonNullable<Awaited<ReturnType<typeof headPart.first>>>;

/** The part after one that is about to end. */
const nextPart = prepared((db, of: QueryParams<{ conversationKey: string; partKey: string }>) =>
  partsOf(db, of).where('key', '<>', of.partKey).limit(1),
);

const partsOf = (db: Kysely<Tables>, of: QueryParams<{ conversationKey: string }>) =>
  db
    .selectFrom('outbox')
    .select(['key', 'state', 'route', 'content', 'attempts', 'dueAt', 'sendingAt'])
    .select(['purpose', 'laneKey', 'problem', 'createdAt'])
    .where('conversationKey', '=', of.conversationKey)
    .where(isOpenPart())
    .where('purpose', '<>', 'preview')
    .orderBy('place');

/** Limits the sends of a part whose call never gets an answer, however long repeats are safe. */
const maxRepeats = 10;

type Candidate = {
  readonly content: Outbound['content'];
  readonly sendingAt: number | null;
  readonly attempts: number;
};

/** Returns the action for a due part. */
function stepFor(
  tx: Tx,
  head: Head,
  { content, sendingAt, attempts }: Candidate,
): 'send' | 'look-up' | 'give-up' {
  if (sendingAt === null) return 'send';
  const mayRepeat = attempts < maxRepeats;
  if (isChange(content)) return mayRepeat ? 'send' : 'give-up';
  const isMadeOnce = content.kind === 'action' && !content.isMessage;
  // `abs`, because the clock may have been set back since.
  if (!isMadeOnce && Math.abs(tx.now - sendingAt) < head.repeatSafeMs && mayRepeat) return 'send';
  if (!isMadeOnce && head.canLookUp) return 'look-up';
  return head.resendUnknown ? 'send' : 'give-up';
}

async function leave(tx: Tx, head: Head, delivery: Delivery): Promise<Delivery> {
  await releaseDelivery(tx, head);
  return delivery;
}

/** Writes who delivers a conversation's parts; no other file does. The callers hold the conversation's lock. */
type DeliveryLease = {
  readonly conversationKey: string;
  readonly epoch: number;
  readonly holder: string;
  readonly claim: string | null;
  readonly until: number;
  /** Set for a reply whose first part begins the lease, so that one statement writes both. */
  readonly nextPart?: number;
};

/** Grants the lease, or renews it. */
export function holdDelivery(tx: Tx, lease: DeliveryLease): Promise<void> {
  const { epoch, holder, claim, until, nextPart } = lease;
  const held = { deliveryEpoch: epoch, deliveryHolder: holder, deliveryClaim: claim, deliveryUntil: until };
  return changeRow(tx, 'conversations', lease.conversationKey, { ...held, nextPart });
}

/** Ends the lease. */
function releaseDelivery(
  tx: Tx,
  { conversationKey, epoch }: Pick<DeliveryLease, 'conversationKey' | 'epoch'>,
): Promise<void> {
  const released = { deliveryEpoch: epoch, deliveryHolder: null, deliveryUntil: 0 };
  return changeRow(tx, 'conversations', conversationKey, released);
}

/** Voids the leases of ended processes on conversations with something left to deliver. */
export async function voidDeliveryLeases(tx: Tx, holders: readonly string[]): Promise<void> {
  await tx.db
    .updateTable('conversations')
    .set({ deliveryHolder: null, deliveryUntil: 0 })
    .where('key', 'in', (open) => open.selectFrom('outbox').select('conversationKey').where(isOpenPart()))
    .where('deliveryHolder', 'in', holders)
    .execute();
}
