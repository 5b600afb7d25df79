/** Writes who delivers a conversation's parts; no other file does. The callers hold the conversation's lock. */
import type { Tx } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { changeRow } from '../base/row-by-key.ts';

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
export function releaseDelivery(
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
