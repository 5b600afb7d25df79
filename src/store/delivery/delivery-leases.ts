/** Writes who delivers a conversation's parts, and nothing else does. The callers hold the conversation's lock. */
import type { Tx } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';

type DeliveryLease = {
  conversationKey: string;
  epoch: number;
  holder: string;
  claim: string | null;
  until: number;
};

/** Grants the lease, or renews it. */
export const holdDelivery = prepared((db, of: QueryParams<DeliveryLease>) =>
  db
    .updateTable('conversations')
    .set({ deliveryEpoch: of.epoch, deliveryHolder: of.holder })
    .set({ deliveryClaim: of.claim, deliveryUntil: of.until })
    .where('key', '=', of.conversationKey),
);

/** Grants the lease with the places of a reply whose first part begins it: one statement for both. */
export const holdWithPlaces = prepared((db, of: QueryParams<DeliveryLease & { nextPart: number }>) =>
  db
    .updateTable('conversations')
    .set({ nextPart: of.nextPart, deliveryEpoch: of.epoch, deliveryHolder: of.holder })
    .set({ deliveryClaim: of.claim, deliveryUntil: of.until })
    .where('key', '=', of.conversationKey),
);

/** Ends the lease. */
export const releaseDelivery = prepared((db, of: QueryParams<{ conversationKey: string; epoch: number }>) =>
  db
    .updateTable('conversations')
    .set({ deliveryEpoch: of.epoch, deliveryHolder: null, deliveryUntil: 0 })
    .where('key', '=', of.conversationKey),
);

/** Voids the leases of processes that have ended, where something is left to deliver. */
export async function voidDeliveryLeases(tx: Tx, holders: readonly string[]): Promise<void> {
  await tx.db
    .updateTable('conversations')
    .set({ deliveryHolder: null, deliveryUntil: 0 })
    .where('key', 'in', (open) => open.selectFrom('outbox').select('conversationKey').where(isOpenPart()))
    .where('deliveryHolder', 'in', holders)
    .execute();
}
