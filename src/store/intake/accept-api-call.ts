/**
 * Puts a program's message into its lane once, however often the call arrives: under the caller's idempotency key or,
 * for a client that only counts its attempts, under the key that an earlier attempt with the same body was given.
 */
import type { StepTx, StoreCommand } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import type { LaneSpec } from '../base/keys.ts';
import { findRow, insertNewRow } from '../base/row-access.ts';
import { type EnqueuedItem, type InnerItem, readEnqueued } from '../items/enqueue-item.ts';
import type { ClaimTerms } from '../lanes/claim-due.ts';
import type { ClaimedRun } from '../lanes/claim-lane.ts';
import { enqueueItems } from './enqueue-items.ts';

export type ApiCallInput = {
  readonly caller: string;
  /** Unique among the caller's calls. */
  readonly key: string;
  /** How many attempts the client says it has made before this one; only counts if the key is new. */
  readonly retry: number;
  /** Hash of what is asked. */
  readonly digest: string;
  readonly lane: LaneSpec;
  readonly item: Omit<InnerItem, 'sourceKey'>;
  readonly claims?: ClaimTerms;
};

/** The item that a call has become, or why it became none. */
export type ApiCallResult =
  | {
      readonly kind: 'accepted';
      /** That of the first call with this key. */
      readonly item: EnqueuedItem;
      readonly effects: Effects;
      readonly runs: readonly ClaimedRun[];
    }
  /** The key belongs to another question. */
  | { readonly kind: 'reused' };

/** How long after its first attempt a call may be repeated without a key, ms: clients wait 10 minutes for an answer. */
const retryMs = 15 * 60_000;

/** Safe to repeat: the row of the key, locked by its insertion, decides which call was first. */
export const acceptApiCall: StoreCommand<ApiCallInput, ApiCallResult> = {
  name: 'acceptApiCall',
  run: async (tx, call) => {
    const tried = call.retry > 0 ? await findTried(tx, call) : undefined;
    const key = tried ?? `${call.caller}/${call.key}`;
    const sourceKey = `api:${key}`;
    const { caller, digest, lane } = call;
    const row = { key, caller, digest, sourceKey, attempts: call.retry + 1, createdAt: tx.now };
    if (!(await insertNewRow(tx, 'apiCalls', row))) {
      const known = await findRow(tx, 'apiCalls', key, ['digest', 'sourceKey']);
      if (known?.digest !== digest) return { kind: 'reused' };
      const item = await readEnqueued(tx, known.sourceKey);
      if (item) return { kind: 'accepted', item, effects: noEffects(), runs: [] };
    }
    const items = [{ lane, item: { ...call.item, sourceKey } }];
    const enqueued = await enqueueItems.run(tx, { items, ...(call.claims && { claims: call.claims }) });
    const [item] = enqueued.items;
    return item ? { kind: 'accepted', ...enqueued, item } : { kind: 'reused' };
  },
};

/**
 * Finds the call that this is another attempt at, and counts it: the same body, and not more attempts than the client
 * has made. Of two equal calls that are attempted again at once, each finds one.
 */
async function findTried(tx: StepTx, { caller, digest, retry }: ApiCallInput): Promise<string | undefined> {
  for (;;) {
    const row = await tx.db
      .selectFrom('apiCalls')
      .select(['key', 'attempts'])
      .where('digest', '=', digest)
      .where('createdAt', '>', tx.now - retryMs)
      .where('caller', '=', caller)
      .where('attempts', '<=', retry)
      .orderBy('attempts', 'desc')
      .orderBy('createdAt', 'desc')
      .orderBy('key')
      .executeTakeFirst();
    if (!row) return undefined;
    const counted = await tx.db
      .updateTable('apiCalls')
      .set({ attempts: retry + 1 })
      .where('key', '=', row.key)
      .where('attempts', '=', row.attempts)
      .returning('key')
      .executeTakeFirst();
    if (counted) return counted.key;
  }
}
