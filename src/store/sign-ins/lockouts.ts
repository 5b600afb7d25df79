/** Addresses that have sent too many wrong secrets, one row each, so that a restart forgets none. */
import type { StoreCommand, StoreQuery } from '../base/command.ts';

/** A locked-out address, or the first half of one, since a person may have every address that begins with it. */
export type Lockout = { readonly source: string; readonly until: number };

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
