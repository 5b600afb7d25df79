import type { Kysely } from 'kysely';
import { longestWaitMs } from '#channel-kit/remote-number.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { PartKey } from '#contracts/ids.ts';
import type { Outbound } from '#contracts/outbound.ts';
import type { StoreCommand, Tx } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { findRow } from '../base/row-by-key.ts';
import { locking } from '../base/row-locks.ts';
import type { Tables } from '../base/tables.ts';
import { lockLanes, tryLockLanes } from '../rows/lane-row.ts';
import { type AskedPart, readAskedWait } from './asked-wait.ts';
import { holdDelivery, releaseDelivery } from './delivery-leases.ts';
import { outboundOf } from './edit-part.ts';
import { endPart } from './end-part.ts';
import { beginSending, firstRepeat, removePart } from './part-states.ts';
import { readWaitingLanes } from './reachability.ts';
import { recordSend, type SendOutcome } from './record-send.ts';
import { isChange } from './tool-target.ts';
import { isObsolete } from './waiting-notice-part.ts';

/** How a channel's parts are delivered; times in ms. */
export type DeliveryPolicy = {
  readonly holder: string;
  /** Names the commit that may claim. The holder begins no call before the commit has answered. */
  readonly claimId?: string;
  readonly leaseMs: number;
  /** How long the platform recognises a repeat by its key; 0 = never. */
  readonly repeatSafeMs: number;
  /** The platform can be asked whether a message arrived. */
  readonly canLookUp?: boolean;
  /** The owner's choice to repeat sends whose result is unknown. */
  readonly resendUnknown: boolean;
};

/** Next step of a claimed conversation. */
export type Delivery =
  | {
      readonly kind: 'part';
      readonly epoch: number;
      readonly part: Outbound;
      readonly attempts: number;
      readonly purpose: string;
      /** How long it had been stored when it was claimed, ms. */
      readonly ageMs: number;
      /** The session whose timeline holds it. */
      readonly laneKey: string | undefined;
      /** Start of an earlier attempt that may have arrived. */
      readonly mayStandSince: number | undefined;
      /** Whether to send it, or first to look for the earlier attempt. */
      readonly step: 'send' | 'look-up';
    }
  | { readonly kind: 'busy'; readonly delayMs: number }
  | { readonly kind: 'later'; readonly delayMs: number }
  | { readonly kind: 'empty' };

/** A delivery claimed by a commit besides its main effect. */
export type ClaimedDelivery = { readonly conversationKey: string; readonly delivery: Delivery };

export type DeliveryClaim = DeliveryPolicy & {
  readonly conversationKey: string;
  /** Ids of commits of this holder that failed: they may have claimed the conversation. */
  readonly unanswered?: readonly string[];
};

/**
 * Step 10, deliver: claims the conversation's head part under a lease and marks it `sending`, all committed
 * before the platform is called. A part found in `sending` belongs to a holder that is gone, and one that waits
 * with a `sendingAt` was cut off: either may have arrived. It is repeated where that is safe (the platform
 * recognises the repeat, or the part only changes an existing message), else looked for, else `unknown`. A claim whose
 * answer never reached its holder is taken over at once: no call of it was begun.
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
  /** At claim time. */
  readonly attempts?: number;
  /** At claim time: an earlier attempt may have arrived. */
  readonly mayStandSince?: number | undefined;
  readonly result: SendOutcome;
  /** False when the holder is about to stop: the conversation is left to the next one. */
  readonly claimsNext: boolean;
};

/**
 * Records what became of the part and claims the next one. Throws `stale_epoch` when the lease moved on. Safe to repeat:
 * a result counts once, whatever the part was made into for its next attempt.
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
        `Conversation ${input.conversationKey} is delivered by another worker now.`,
      );
    }
    const isRecorded = isAhead(input, asked);
    if (!isRecorded) await recordSend(tx, input, asked);
    if (!input.claimsNext) return leave(tx, input, { kind: 'empty' });
    // Anything else that has become of the part may have changed what comes after it.
    const head = input.result.kind === 'sent' ? next : await headPart.first(tx, input);
    return claimPart(tx, input, head && asUnclaimed(head, isRecorded ? input : undefined));
  },
};

/** Whether the part is further than when its attempt began: a commit whose answer was lost has recorded the result. */
function isAhead({ attempts }: RecordDeliveryInput, part: AskedPart | undefined): boolean {
  return attempts !== undefined && (part?.state !== 'sending' || part.attempts !== attempts);
}

/**
 * Locks the lanes that the result may reach, before the conversation, as every step of a lane does: the
 * agent learns about a failure, and waiting messages of a person who has blocked the bot end.
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
 * Frees a part in `sending` whose claim never reached its holder: it follows the one that is recorded now, and was
 * claimed as that one was recorded before, or its claim has no answer. Nobody has begun to send it. A repeat may be of a
 * send that arrived.
 */
function asUnclaimed(part: HeadPart, recorded?: RecordDeliveryInput): HeadPart {
  if (part.state !== 'sending') return part;
  // Claimed once more by the commit that recorded its result.
  const before = { attempts: part.attempts - 1, sendingAt: recorded?.mayStandSince ?? null };
  if (part.key === recorded?.partKey) return { ...part, state: 'pending', ...before };
  return part.attempts >= firstRepeat ? part : { ...part, state: 'pending', attempts: 0, sendingAt: null };
}

/** Claims the part if it is to be sent now, else the next one that is. */
async function claimPart(tx: Tx, head: Head, first: HeadPart | undefined): Promise<Delivery> {
  for (let part = first; ; part = await headPart.first(tx, head)) {
    if (!part) return leave(tx, head, { kind: 'empty' });
    if (await isObsolete(tx, part.key)) {
      await removePart(tx, part.key);
      continue;
    }
    const delayMs = part.dueAt - tx.now;
    // Nothing is ever made to wait for longer: it was stored by a clock that was wrong.
    if (part.state === 'pending' && delayMs > 0 && delayMs <= longestWaitMs)
      return leave(tx, head, { kind: 'later', delayMs });
    const content = await outboundOf(tx, json.outbound(part.content));
    if (content === undefined) {
      await removePart(tx, part.key);
      continue;
    }
    const step = stepFor(tx, head, { ...part, content });
    if (step === 'give-up') {
      // The agent learns about it in its lane, which comes before the conversation in the order of locks.
      if (part.laneKey !== null && (await tryLockLanes(tx, [part.laneKey])).length === 0)
        return leave(tx, head, { kind: 'later', delayMs: lockedLaneMs });
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
      mayStandSince: part.sendingAt ?? undefined,
      step,
    };
  }
}

/** How long to wait for a lane that a step has locked: steps take some milliseconds. */
const lockedLaneMs = 50;

/** The next part of a conversation's order; previews are outside the order. */
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

/** However long a repeat is safe, a call that never gets an answer ends. */
const mostRepeats = 10;

type Candidate = {
  readonly content: Outbound['content'];
  readonly sendingAt: number | null;
  readonly attempts: number;
};

/** The action for a due part. */
function stepFor(
  tx: Tx,
  head: Head,
  { content, sendingAt, attempts }: Candidate,
): 'send' | 'look-up' | 'give-up' {
  if (sendingAt === null) return 'send';
  const mayRepeat = attempts < mostRepeats;
  if (isChange(content)) return mayRepeat ? 'send' : 'give-up';
  // A clock that was set back since doesn't tell how long ago that was.
  if (Math.abs(tx.now - sendingAt) < head.repeatSafeMs && mayRepeat) return 'send';
  if (head.canLookUp) return 'look-up';
  return head.resendUnknown ? 'send' : 'give-up';
}

async function leave(tx: Tx, head: Head, delivery: Delivery): Promise<Delivery> {
  await releaseDelivery(tx, head);
  return delivery;
}
