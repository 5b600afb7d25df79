import { isStoreAway } from '#contracts/errors.ts';
import type { Store } from './base/command.ts';

/** Why the database refused the last write. */
export type StoreTrouble = {
  /** One sentence with what to do. */
  readonly reason: string;
  /** Time of the first failed step, ms since the epoch. */
  readonly since: number;
};

/** A store that remembers whether its last write succeeded. */
export type WatchedStore = Store & {
  /** Why the last write was refused by the database or its disk; undefined when it succeeded. */
  trouble(): StoreTrouble | undefined;
};

/**
 * Remembers whether the database accepts writes. Every process writes every few seconds, if only to renew its leases,
 * so the answer is never old.
 */
export function watchStore(store: Store, now: () => number): WatchedStore {
  let trouble: StoreTrouble | undefined;
  return {
    ...store,
    trouble: () => trouble,
    write: async (command, input) => {
      try {
        const output = await store.write(command, input);
        trouble = undefined;
        return output;
      } catch (error) {
        if (isStoreAway(error)) trouble = { reason: error.message, since: trouble?.since ?? now() };
        throw error;
      }
    },
  };
}
