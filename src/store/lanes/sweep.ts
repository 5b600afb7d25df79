import type { StoreCommand, StoreQuery } from '../command.ts';
import { rememberContext } from '../intake/remember-context.ts';
import { json } from '../json.ts';
import { isOpenItem, isOpenPart } from '../open-rows.ts';
import { lockLane } from './lane-row.ts';

export type Sweep = {
  readonly lanes: readonly {
    readonly laneKey: string;
    readonly class: string;
    readonly waitingSince: number;
  }[];
  readonly conversations: readonly string[];
  readonly expiredBundles: readonly string[];
  readonly fetches: readonly string[];
};

const batch = 500;

/**
 * Step 11: everything that should be moving and is not. Enough for correctness on its own; wakes and
 * notifications are for speed.
 */
export const readSweep: StoreQuery<{ readonly now?: number }, Sweep> = {
  query: 'readSweep',
  run: async (tx, input) => {
    const now = input.now ?? tx.now;
    const due = await tx.db
      .selectFrom('inbox')
      .innerJoin('lanes', 'lanes.key', 'inbox.laneKey')
      .select((eb) => ['inbox.laneKey', 'lanes.class', eb.fn.min('inbox.dueAt').as('since')])
      .where(isOpenItem())
      .where('inbox.state', '=', 'waiting')
      .where('inbox.dueAt', '<=', now)
      .where('lanes.leaseUntil', '<=', now)
      .groupBy(['inbox.laneKey', 'lanes.class'])
      .limit(batch)
      .execute();
    const unfinished = await tx.db
      .selectFrom('lanes')
      .select(['key', 'class', 'leaseUntil'])
      .where('runId', 'is not', null)
      .where('leaseUntil', '<=', now)
      .limit(batch)
      .execute();
    const conversations = await tx.db
      .selectFrom('outbox')
      .innerJoin('conversations', 'conversations.key', 'outbox.conversationKey')
      .select('outbox.conversationKey')
      .distinct()
      .where(isOpenPart())
      .where('outbox.dueAt', '<=', now)
      .where('conversations.deliveryUntil', '<=', now)
      .limit(batch)
      .execute();
    const held = await tx.db
      .selectFrom('inbox')
      .select('laneKey')
      .distinct()
      .where(isOpenItem())
      .where('state', '=', 'held')
      .where('dueAt', '<=', now)
      .limit(batch)
      .execute();
    const fetches = await tx.db
      .selectFrom('inbox')
      .select('id')
      .where(isOpenItem())
      .where('isFetching', '=', 1)
      .limit(batch)
      .execute();
    return {
      lanes: [
        ...due.map((row) => ({ laneKey: row.laneKey, class: row.class, waitingSince: Number(row.since) })),
        ...unfinished.map((row) => ({ laneKey: row.key, class: row.class, waitingSince: row.leaseUntil })),
      ],
      conversations: conversations.map((row) => row.conversationKey),
      expiredBundles: held.map((row) => row.laneKey),
      fetches: fetches.map((row) => row.id),
    };
  },
};

/** No part of these bundles passed the mention gate in time: they become context, like any unmentioned message. */
export const closeBundles: StoreCommand<
  { readonly laneKeys: readonly string[]; readonly limit: number },
  void
> = {
  name: 'closeBundles',
  run: async (tx, { laneKeys, limit }) => {
    for (const laneKey of [...laneKeys].sort()) {
      await lockLane(tx, laneKey);
      const rows = await tx.db
        .selectFrom('inbox')
        .selectAll()
        .where('laneKey', '=', laneKey)
        .where(isOpenItem())
        .where('state', '=', 'held')
        .where('dueAt', '<=', tx.now)
        .orderBy('seq')
        .execute();
      for (const row of rows) {
        await rememberContext(tx, {
          laneKey,
          account: row.account,
          messageId: row.messageId ?? undefined,
          content: json.content(row.content),
          limit,
        });
        await tx.db.deleteFrom('inbox').where('id', '=', row.id).execute();
        await tx.db
          .updateTable('ledger')
          .set({ outcome: 'ignored', reason: 'not-mentioned' })
          .where('account', '=', row.account)
          .where('conversationKey', '=', row.conversationKey)
          .where('messageId', '=', row.messageId)
          .where('outcome', '=', 'held')
          .execute();
      }
    }
  },
};
