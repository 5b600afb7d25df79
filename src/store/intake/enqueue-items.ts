import type { StoreCommand, StoreQuery } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import type { LaneRef } from '../base/keys.ts';
import { type EnqueuedItem, enqueueItem, type InnerItem, readEnqueued } from '../items/enqueue-item.ts';
import { type ClaimTerms, claimDue } from '../lanes/claim-due.ts';
import type { ClaimedRun } from '../lanes/claim-lane.ts';
import { lockOrMakeLanes } from '../rows/lane.ts';

export type EnqueueResult = {
  /** In input order. */
  readonly items: readonly EnqueuedItem[];
  readonly effects: Effects;
  /** Runs claimed for the holder, with their items taken: it must execute them now. */
  readonly runs: readonly ClaimedRun[];
};

/** Finds what an earlier call has stored under a source key. */
export const findEnqueued: StoreQuery<{ readonly sourceKey: string }, EnqueuedItem | undefined> = {
  query: 'findEnqueued',
  run: (tx, { sourceKey }) => readEnqueued(tx, sourceKey),
};

/**
 * Puts items from inside Parley into their lanes, all or none, and claims the lanes that the caller has slots for. Safe
 * to repeat: each item is stored once under its source key. Throws `invalid_input` for a lane that is named by its key
 * but doesn't exist.
 */
export const enqueueItems: StoreCommand<
  {
    readonly items: readonly { readonly lane: LaneRef; readonly item: InnerItem }[];
    /** Absent if the process has no free slot, or doesn't work lanes at all. */
    readonly claims?: ClaimTerms;
  },
  EnqueueResult
> = {
  name: 'enqueueItems',
  run: async (tx, { items, claims }) => {
    const effects = noEffects();
    if (tx.dialect === 'postgres')
      await lockOrMakeLanes(
        tx,
        items.map(({ lane }) => lane),
      );
    const enqueued = new Map<string, EnqueuedItem>();
    for (const { lane, item } of items)
      enqueued.set(item.sourceKey, await enqueueItem(tx, lane, item, effects));
    const runs = claims ? await claimDue(tx, claims, effects) : [];
    return { items: items.flatMap(({ item }) => enqueued.get(item.sourceKey) ?? []), effects, runs };
  },
};
