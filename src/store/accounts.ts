import type { StoreCommand, StoreQuery, Tx } from './command.ts';
import { isOpenPart } from './open-rows.ts';

export type AccountClaim = { readonly account: string; readonly holder: string; readonly leaseMs: number };

export type AccountLease =
  | { readonly kind: 'held'; readonly epoch: number; readonly cursor: string | undefined }
  | { readonly kind: 'busy'; readonly delayMs: number };

/** One process receives for a bot account. A claim by the holder itself renews without a new epoch. */
export const claimAccount: StoreCommand<AccountClaim, AccountLease> = {
  name: 'claimAccount',
  run: async (tx, { account, holder, leaseMs }) => {
    await tx.db
      .insertInto('accounts')
      .values({ key: account, epoch: 0, leaseUntil: 0 })
      .onConflict((c) => c.doNothing())
      .execute();
    const query = tx.db.selectFrom('accounts').selectAll().where('key', '=', account);
    const row = await (tx.dialect === 'postgres' ? query.forUpdate() : query).executeTakeFirstOrThrow();
    if (row.leaseUntil > tx.now && row.holder !== holder)
      return { kind: 'busy', delayMs: row.leaseUntil - tx.now };
    const epoch = row.holder === holder ? row.epoch : row.epoch + 1;
    await tx.db
      .updateTable('accounts')
      .set({ epoch, holder, leaseUntil: tx.now + leaseMs })
      .where('key', '=', account)
      .execute();
    return { kind: 'held', epoch, cursor: row.cursor ?? undefined };
  },
};

export const releaseAccount: StoreCommand<{ readonly account: string; readonly holder: string }, void> = {
  name: 'releaseAccount',
  run: async (tx, { account, holder }) => {
    await tx.db
      .updateTable('accounts')
      .set({ holder: null, leaseUntil: 0 })
      .where('key', '=', account)
      .where('holder', '=', holder)
      .execute();
  },
};

/** Of the list of commands that the account's network was told last; undefined when it never was. */
export const readCommandsHash: StoreQuery<{ readonly account: string }, string | undefined> = {
  query: 'readCommandsHash',
  run: async (tx, { account }) => {
    const row = await tx.db
      .selectFrom('accounts')
      .select('commandsHash')
      .where('key', '=', account)
      .executeTakeFirst();
    return row?.commandsHash ?? undefined;
  },
};

/** Safe to repeat. Written after the network has confirmed: a crash in between registers once more. */
export const rememberCommands: StoreCommand<{ readonly account: string; readonly hash: string }, void> = {
  name: 'rememberCommands',
  run: async (tx, { account, hash }) => {
    await tx.db.updateTable('accounts').set({ commandsHash: hash }).where('key', '=', account).execute();
  },
};

/** Which calls to platforms an earlier process had begun, and which ended is not on record. */
export type EarlierSends = { readonly holder: string; readonly begun: readonly string[] };

export type Boot = {
  readonly id: string;
  readonly folder: string;
  /** Absent when nobody can say: what that process was sending is then unknown. */
  readonly earlier?: EarlierSends;
};

/**
 * Called by the process that holds the data folder's lock: whatever an earlier process on this folder
 * held is free at once, without waiting for its leases to end.
 */
export const beginBoot: StoreCommand<Boot, void> = {
  name: 'beginBoot',
  run: async (tx, { id, folder, earlier: sends }) => {
    const earlier = await tx.db
      .selectFrom('boots')
      .select('id')
      .where('folder', '=', folder)
      .where('id', '<>', id)
      .execute();
    const ids = earlier.map((boot) => boot.id);
    await tx.db
      .insertInto('boots')
      .values({ id, folder, startedAt: tx.now, role: 'all' })
      .onConflict((c) => c.doNothing())
      .execute();
    if (ids.length === 0) return;
    await tx.db
      .updateTable('lanes')
      // Ended now: from here on the sweep counts how long an unfinished run has waited.
      .set({ holder: null, leaseUntil: tx.now })
      .where('holder', 'in', ids)
      .execute();
    await tx.db
      .updateTable('accounts')
      .set({ holder: null, leaseUntil: 0 })
      .where('holder', 'in', ids)
      .execute();
    if (sends && ids.includes(sends.holder)) await takeBackUnsent(tx, sends);
    await tx.db
      .updateTable('conversations')
      .set({ deliveryHolder: null, deliveryUntil: 0 })
      .where('deliveryHolder', 'in', ids)
      .execute();
    await tx.db.deleteFrom('boots').where('id', 'in', ids).execute();
  },
};

/** What was about to be sent, and whose call had not begun, waits again. */
async function takeBackUnsent(tx: Tx, { holder, begun }: EarlierSends): Promise<void> {
  const inHand = await tx.db
    .selectFrom('outbox')
    .innerJoin('conversations', 'conversations.key', 'outbox.conversationKey')
    .select('outbox.key')
    .where('conversations.deliveryHolder', '=', holder)
    .where(isOpenPart())
    .where('outbox.state', '=', 'sending')
    // Of a repeat nobody can say what became of the tries before it.
    .where('outbox.tries', '=', 1)
    .execute();
  const known = new Set(begun);
  const unsent = inHand.map(({ key }) => key).filter((key) => !known.has(key));
  if (unsent.length === 0) return;
  await tx.db
    .updateTable('outbox')
    .set({ state: 'pending', tries: 0, sendingAt: null })
    .where('key', 'in', unsent)
    .execute();
}
