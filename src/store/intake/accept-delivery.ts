/** Puts a delivery to a webhook into its lane once, however often its sender repeats it. */
import type { StoreCommand } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import type { LaneRef } from '../base/keys.ts';
import { findRow, insertNewRow } from '../base/row-access.ts';
import type { InnerItem } from '../items/enqueue-item.ts';
import type { ClaimTerms } from '../lanes/claim-due.ts';
import type { ClaimedRun } from '../lanes/claim-lane.ts';
import { enqueueItems } from './enqueue-items.ts';

export type DeliveryInput = {
  /** The webhook's name. */
  readonly hook: string;
  /** The same for each attempt at the same delivery. */
  readonly delivery: string;
  /** For how long the same delivery counts as another attempt, ms; absent: for ever. */
  readonly repeatMs?: number;
  readonly lane: LaneRef;
  readonly item: Omit<InnerItem, 'sourceKey'>;
  readonly claims?: ClaimTerms;
};

/** Result of an attempt at a delivery. */
export type DeliveryResult =
  | { readonly kind: 'accepted'; readonly effects: Effects; readonly runs: readonly ClaimedRun[] }
  /** It was accepted before. */
  | { readonly kind: 'repeated' };

/** Safe to repeat: the row of the delivery, locked by its insertion or change, decides which attempt was first. */
export const acceptDelivery: StoreCommand<DeliveryInput, DeliveryResult> = {
  name: 'acceptDelivery',
  run: async (tx, { hook, delivery, repeatMs, lane, item, claims }) => {
    const key = `webhook/${hook}/${delivery}`;
    const sourceKey = `api:${key}/${item.id}`;
    const row = { key, caller: `webhook/${hook}`, digest: delivery, sourceKey, attempts: 1 };
    if (!(await insertNewRow(tx, 'apiCalls', { ...row, createdAt: tx.now }))) {
      const known = await findRow(tx, 'apiCalls', key, ['createdAt']);
      if (known === undefined || repeatMs === undefined || known.createdAt > tx.now - repeatMs)
        return { kind: 'repeated' };
      const renewed = await tx.db
        .updateTable('apiCalls')
        .set({ createdAt: tx.now, sourceKey })
        .where('key', '=', key)
        .where('createdAt', '=', known.createdAt)
        .returning('key')
        .executeTakeFirst();
      if (renewed === undefined) return { kind: 'repeated' };
    }
    const items = [{ lane, item: { ...item, sourceKey } }];
    const enqueued = await enqueueItems.run(tx, { items, ...(claims && { claims }) });
    return { kind: 'accepted', effects: enqueued.effects, runs: enqueued.runs };
  },
};
