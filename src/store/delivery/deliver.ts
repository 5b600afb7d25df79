import { ParleyError } from '#contracts/errors.ts';
import type { PartKey } from '#contracts/ids.ts';
import type { Outbound } from '#contracts/outbound.ts';
import type { StoreCommand, Tx } from '../command.ts';
import { json } from '../json.ts';
import { isOpenPart } from '../open-rows.ts';
import { endPart, type Settled, settlePart } from './settle-part.ts';

export type DeliveryPolicy = {
  readonly holder: string;
  readonly leaseMs: number;
  /** How long the platform recognises a repeat by its key; 0 = never. */
  readonly repeatSafeMs: number;
  /** The owner's choice to repeat sends whose result is unknown. */
  readonly resendUnknown: boolean;
};

export type Delivery =
  | {
      readonly kind: 'part';
      readonly epoch: number;
      readonly part: Outbound;
      readonly tries: number;
      readonly purpose: string;
      /** The session whose timeline it stands in. */
      readonly laneKey: string | undefined;
    }
  | { readonly kind: 'busy'; readonly delayMs: number }
  | { readonly kind: 'later'; readonly delayMs: number }
  | { readonly kind: 'empty' };

export type DeliveryClaim = DeliveryPolicy & { readonly conversationKey: string };

/**
 * Step 10, deliver: claims the conversation's head part under a lease and marks it `sending`, all
 * committed before the platform is called. A part found in `sending` belongs to a holder that is gone:
 * it becomes `unknown`, or is repeated where that is safe: the platform recognises the repeat, or the
 * part only changes a message that stands.
 */
export const claimDelivery: StoreCommand<DeliveryClaim, Delivery> = {
  name: 'claimDelivery',
  run: async (tx, input) => {
    const row = await lockConversation(tx, input.conversationKey);
    if (!row) return { kind: 'empty' };
    if (row.deliveryUntil > tx.now) return { kind: 'busy', delayMs: row.deliveryUntil - tx.now };
    const epoch = row.deliveryEpoch + 1;
    return claimHead(tx, { ...input, epoch });
  },
};

export type Settling = DeliveryPolicy & {
  readonly conversationKey: string;
  readonly epoch: number;
  readonly partKey: string;
  readonly result: Settled;
  /** False when the holder is about to stop: the conversation is left to the next one. */
  readonly claimsNext: boolean;
};

/** Records what became of the part and claims the next one. Throws `stale_epoch` when the lease moved on. */
export const settleDelivery: StoreCommand<Settling, Delivery> = {
  name: 'settleDelivery',
  run: async (tx, input) => {
    const row = await lockConversation(tx, input.conversationKey);
    if (row?.deliveryEpoch !== input.epoch) {
      throw new ParleyError(
        'stale_epoch',
        `Conversation ${input.conversationKey} is delivered by another worker now.`,
      );
    }
    await settlePart(tx, input);
    return input.claimsNext ? claimHead(tx, input) : leave(tx, input, { kind: 'empty' });
  },
};

async function lockConversation(tx: Tx, key: string) {
  const query = tx.db
    .selectFrom('conversations')
    .select(['deliveryEpoch', 'deliveryUntil', 'deliveryHolder'])
    .where('key', '=', key);
  return (tx.dialect === 'postgres' ? query.forUpdate() : query).executeTakeFirst();
}

type Head = DeliveryPolicy & { readonly conversationKey: string; readonly epoch: number };

async function claimHead(tx: Tx, head: Head): Promise<Delivery> {
  while (true) {
    const part = await tx.db
      .selectFrom('outbox')
      .select(['key', 'state', 'route', 'content', 'tries', 'dueAt', 'sendingAt', 'purpose', 'laneKey'])
      .where('conversationKey', '=', head.conversationKey)
      .where(isOpenPart())
      .where('purpose', '<>', 'preview')
      .orderBy('place')
      .limit(1)
      .executeTakeFirst();
    if (!part) return leave(tx, head, { kind: 'empty' });
    const content = json.outbound(part.content);
    if (part.state === 'sending') {
      const isRecognised = part.sendingAt !== null && tx.now - part.sendingAt < head.repeatSafeMs;
      if (!isRecognised && !isChange(content) && !head.resendUnknown) {
        await endPart(tx, { key: part.key, state: 'unknown', problem: 'interrupted while sending' });
        continue;
      }
    } else if (part.dueAt > tx.now) {
      return leave(tx, head, { kind: 'later', delayMs: part.dueAt - tx.now });
    }
    await tx.db
      .updateTable('outbox')
      .set({ state: 'sending', sendingAt: part.sendingAt ?? tx.now, tries: part.tries + 1 })
      .where('key', '=', part.key)
      .execute();
    await hold(tx, head);
    const outbound: Outbound = { key: part.key as PartKey, route: json.route(part.route), content };
    return {
      kind: 'part',
      epoch: head.epoch,
      part: outbound,
      tries: part.tries + 1,
      purpose: part.purpose,
      laneKey: part.laneKey ?? undefined,
    };
  }
}

/** What a change leaves behind is the same however often it is made. */
function isChange({ kind }: Outbound['content']): boolean {
  return kind === 'edit' || kind === 'delete' || kind === 'reaction';
}

async function hold(tx: Tx, { conversationKey, epoch, holder, leaseMs }: Head): Promise<void> {
  await tx.db
    .updateTable('conversations')
    .set({ deliveryEpoch: epoch, deliveryHolder: holder, deliveryUntil: tx.now + leaseMs })
    .where('key', '=', conversationKey)
    .execute();
}

async function leave(tx: Tx, { conversationKey, epoch }: Head, delivery: Delivery): Promise<Delivery> {
  await tx.db
    .updateTable('conversations')
    .set({ deliveryEpoch: epoch, deliveryHolder: null, deliveryUntil: 0 })
    .where('key', '=', conversationKey)
    .execute();
  return delivery;
}
