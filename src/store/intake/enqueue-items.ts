import type { StoreCommand } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import type { LaneRef } from '../base/lane-spec.ts';
import { type EnqueuedItem, enqueueItem, type InnerItem } from '../items/enqueue-item.ts';
import { type ClaimTerms, claimDue } from '../lanes/claim-due.ts';
import type { ClaimedRun } from '../lanes/claim-lane.ts';
import { lockOrMakeLanes } from '../rows/lane-row.ts';

export type EnqueueInput = {
  readonly items: readonly { readonly lane: LaneRef; readonly item: InnerItem }[];
  /** Absent when the process has no slot free, or works no lanes. */
  readonly claims?: ClaimTerms;
};

export type EnqueueResult = {
  /** In the order of the input. */
  readonly items: readonly EnqueuedItem[];
  readonly effects: Effects;
  /** Claimed for the holder, their items taken: it works them now. */
  readonly runs: readonly ClaimedRun[];
};

/**
 * Puts items from inside Parley into their lanes, all or none, and claims those that the caller can work at
 * once. Safe to repeat: each is there once under its source key. Throws `invalid_input` for a lane that is
 * named by its key and is not there.
 */
export const enqueueItems: StoreCommand<EnqueueInput, EnqueueResult> = {
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
