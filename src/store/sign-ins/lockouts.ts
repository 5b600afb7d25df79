/** Addresses that have sent too many wrong secrets, a row each, so that a restart forgets none. */
import type { StoreCommand, StoreQuery } from '../base/command.ts';

/** An address, or the first half of one, which one person has whole. */
export type Lockout = { readonly source: string; readonly until: number };

/** Most rows; those that expire first are dropped. */
const maxLockouts = 1_000;

/** Locks an address out, and sweeps what is over. Safe to repeat. */
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

/** When the lockout of an address ends; undefined when it has none. */
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
