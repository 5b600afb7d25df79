import { ParleyError } from '../../src/contracts/errors.ts';
import type { Store } from '../../src/store/base/command.ts';

/** When the power fails: at the n-th write (from 1), before it or right after its commit. */
export type PowerCut = { readonly write: number; readonly isCommitted: boolean };

export type CutStore = Store & { readonly isCut: () => boolean };

/** A real store whose process loses power at one write: that write isn't answered, and no others follow. */
export function cutPower(store: Store, cut: PowerCut): CutStore {
  let count = 0;
  const lost = () => new ParleyError('store_unavailable', 'the power is gone');
  return {
    isCut: () => count >= cut.write,
    write: async (command, input) => {
      count += 1;
      if (count < cut.write) return store.write(command, input);
      if (count === cut.write && cut.isCommitted) await store.write(command, input);
      throw lost();
    },
    // Normally piggybacks on other commits; whether it was lost makes no difference.
    writeAlong: () => undefined,
    read: (query, input) => (count < cut.write ? store.read(query, input) : Promise.reject(lost())),
    broken: store.broken,
    close: () => store.close(),
  };
}

/** Returns both kinds of cut for each of the first `writes` writes. */
export function everyCut(writes: number): readonly PowerCut[] {
  return Array.from({ length: writes }, (_, index) => index + 1).flatMap((write) => [
    { write, isCommitted: false },
    { write, isCommitted: true },
  ]);
}
