import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import type { QueryParams } from '../base/prepared.ts';
import { changeRow, findRow, locking, lockRows } from '../base/row-access.ts';

export type AccountClaim = { readonly account: string; readonly holder: string; readonly leaseMs: number };

/** The answer to a claim. */
export type AccountLease =
  | {
      readonly kind: 'held';
      readonly epoch: number;
      readonly cursor: string | undefined;
      /** The latest time at which the previous lease ended, ms since the epoch; undefined for the first lease. */
      readonly heldUntil: number | undefined;
    }
  | { readonly kind: 'busy'; readonly delayMs: number };

/** Claims a bot account: one process receives for it. The holder's own claim renews the lease and keeps the epoch. */
export const claimAccount: StoreCommand<AccountClaim, AccountLease> = {
  name: 'claimAccount',
  run: async (tx, { account, holder, leaseMs }) => {
    await tx.db
      .insertInto('accounts')
      .values({ key: account, epoch: 0, leaseUntil: 0 })
      .onConflict((c) => c.doNothing())
      .execute();
    const row = await lockedAccount.one(tx, { account });
    const isTheirs = row.holder !== null && row.holder !== holder;
    if (isTheirs && row.leaseUntil > tx.now) return { kind: 'busy', delayMs: row.leaseUntil - tx.now };
    const epoch = row.holder === holder ? row.epoch : row.epoch + 1;
    await changeRow(tx, 'accounts', account, { epoch, holder, leaseUntil: tx.now + leaseMs });
    return { kind: 'held', epoch, cursor: row.cursor ?? undefined, heldUntil: row.leaseUntil || undefined };
  },
};

const lockedAccount = locking((db, of: QueryParams<{ account: string }>) =>
  db.selectFrom('accounts').selectAll().where('key', '=', of.account),
);

/** Releases the account's lease if this holder has it. The lease's end remains on record. */
export const releaseAccount: StoreCommand<{ readonly account: string; readonly holder: string }, void> = {
  name: 'releaseAccount',
  run: async (tx, { account, holder }) => {
    await tx.db
      .updateTable('accounts')
      .set({ holder: null })
      .where('key', '=', account)
      .where('holder', '=', holder)
      .execute();
  },
};

/** Locks accounts' rows in key order. Every change of access does this first, just like receiving for an account. */
export async function lockAccounts(tx: Tx, keys: readonly string[]): Promise<void> {
  if (tx.dialect !== 'postgres' || keys.length === 0) return;
  await lockRows(tx, tx.db.selectFrom('accounts').select('key').where('key', 'in', keys).orderBy('key'));
}

/** Voids the leases of processes that have ended. */
export async function voidAccountLeases(tx: Tx, holders: readonly string[]): Promise<void> {
  const held = await tx.db.selectFrom('accounts').select('key').where('holder', 'in', holders).execute();
  await lockAccounts(
    tx,
    held.map(({ key }) => key),
  );
  await tx.db.updateTable('accounts').set({ holder: null }).where('holder', 'in', holders).execute();
}

/** Reads the hash of the command list last registered for the account; undefined if there was none. */
export const readCommandsHash: StoreQuery<{ readonly account: string }, string | undefined> = {
  query: 'readCommandsHash',
  run: async (tx, { account }) => {
    const row = await findRow(tx, 'accounts', account, ['commandsHash']);
    return row?.commandsHash ?? undefined;
  },
};

/**
 * Stores the hash of a registered command list. Call it after the network has confirmed: after a crash in between, the
 * list is registered again. Safe to repeat.
 */
export const rememberCommands: StoreCommand<{ readonly account: string; readonly hash: string }, void> = {
  name: 'rememberCommands',
  run: async (tx, { account, hash }) => {
    await changeRow(tx, 'accounts', account, { commandsHash: hash });
  },
};
