/**
 * The browsers that are signed in, one row each. A browser without a row is signed out, in every process and after
 * every restart. Times are passed in by the server, since only the server knows when a cookie was made.
 */

import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { changeRow, ensureRow } from '../base/row-access.ts';
import type { SignInsTable } from '../base/tables.ts';

/** A browser that is signed in. */
export type SignIn = Readonly<Omit<SignInsTable, 'secretHash' | 'issuer'>>;

/** Selection of one access token's sign-ins; those of any other token belong to nobody. */
type OfIssuer = { readonly issuer: string; readonly at: number };

/** Maximum number of sign-ins per access token; the one seen longest ago is dropped. */
export const maxSignIns = 100;

/** Stores a sign-in, removes expired ones and enforces the limit. Safe to repeat: there is one row per secret. */
export const openSignIn: StoreCommand<
  OfIssuer & Omit<SignIn, 'createdAt' | 'lastSeenAt'> & { readonly secretHash: string },
  void
> = {
  name: 'openSignIn',
  run: async (tx, { at, ...row }) => {
    await tx.db.deleteFrom('signIns').where('expiresAt', '<=', at).execute();
    await ensureRow(tx, 'signIns', { ...row, createdAt: at, lastSeenAt: at });
    const kept = tx.db
      .selectFrom('signIns')
      .select('id')
      .where('issuer', '=', row.issuer)
      .orderBy('lastSeenAt', 'desc')
      .orderBy('createdAt', 'desc')
      .orderBy('id', 'desc')
      .limit(maxSignIns);
    await tx.db.deleteFrom('signIns').where('issuer', '=', row.issuer).where('id', 'not in', kept).execute();
  },
};

/** Removes one sign-in, or all but one. Returns the ids of those that ended. Repeating it changes nothing. */
export const endSignIns: StoreCommand<
  { readonly issuer: string } & ({ readonly id: string } | { readonly allBut?: string }),
  readonly string[]
> = {
  name: 'endSignIns',
  run: async (tx, input) => {
    const ended = tx.db.deleteFrom('signIns').where('issuer', '=', input.issuer).returning('id');
    const rows = await ('id' in input
      ? ended.where('id', '=', input.id)
      : ended.where('id', '<>', input.allBut ?? '')
    ).execute();
    return rows.map(({ id }) => id);
  },
};

/** Records that a browser was just seen. For freshness only. */
export const touchSignIn: StoreCommand<{ readonly id: string; readonly at: number }, void> = {
  name: 'touchSignIn',
  run: async (tx, { id, at }) => {
    await changeRow(tx, 'signIns', id, { lastSeenAt: at });
  },
};

/** Finds the valid sign-in whose cookie has this hash. */
export const findSignIn: StoreQuery<
  { readonly secretHash: string; readonly at: number },
  SignIn | undefined
> = {
  query: 'findSignIn',
  run: (tx, { secretHash, at }) => living(tx, at).where('secretHash', '=', secretHash).executeTakeFirst(),
};

/** Reads all valid sign-ins, the most recently seen first. */
export const readSignIns: StoreQuery<OfIssuer, readonly SignIn[]> = {
  query: 'readSignIns',
  run: (tx, { issuer, at }) =>
    living(tx, at).where('issuer', '=', issuer).orderBy('lastSeenAt', 'desc').limit(maxSignIns).execute(),
};

function living(tx: Tx, at: number) {
  return tx.db
    .selectFrom('signIns')
    .select(['id', 'browser', 'createdAt', 'lastSeenAt', 'expiresAt'])
    .where('expiresAt', '>', at);
}

// Addresses that have sent too many wrong secrets, one row each, so that a restart forgets none.

/** A locked-out address, or the first half of one, since a person may have every address that begins with it. */
type Lockout = { readonly source: string; readonly until: number };

/** Maximum number of rows; those that expire first are dropped. */
const maxLockouts = 1_000;

/** Locks an address out, and removes expired lockouts. Safe to repeat. */
export const lockOut: StoreCommand<Lockout & { readonly at: number }, void> = {
  name: 'lockOut',
  run: async ({ db }, { source, until, at }) => {
    await db.deleteFrom('lockouts').where('until', '<=', at).execute();
    await db
      .insertInto('lockouts')
      .values({ source, until })
      .onConflict((conflict) => conflict.column('source').doUpdateSet({ until }))
      .execute();
    const kept = db
      .selectFrom('lockouts')
      .select('source')
      .orderBy('until', 'desc')
      .orderBy('source')
      .limit(maxLockouts);
    await db.deleteFrom('lockouts').where('source', 'not in', kept).execute();
  },
};

/** Reads when an address's lockout ends; undefined if it has none. */
export const findLockout: StoreQuery<{ readonly source: string; readonly at: number }, number | undefined> = {
  query: 'findLockout',
  run: async ({ db }, { source, at }) => {
    const row = await db
      .selectFrom('lockouts')
      .select('until')
      .where('source', '=', source)
      .where('until', '>', at)
      .executeTakeFirst();
    return row?.until;
  },
};
