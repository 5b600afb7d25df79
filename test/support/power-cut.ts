import { ParleyError } from '../../src/contracts/errors.ts';
import type { Store } from '../../src/store/base/command.ts';

/** Where the power goes: at the n-th write (from 1), before it or right behind its commit. */
export type PowerCut = { readonly write: number; readonly isCommitted: boolean };

export type CutStore = Store & { readonly isCut: () => boolean };

/** A real store whose process loses power at one write: that one is not answered, and none comes after it. */
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
    // Rides along with other commits; whether it was lost makes no difference.
    writeAlong: () => undefined,
    read: (query, input) => (count < cut.write ? store.read(query, input) : Promise.reject(lost())),
    broken: store.broken,
    close: () => store.close(),
  };
}

/** Both sides of each of the first `writes` writes. */
export function everyCut(writes: number): readonly PowerCut[] {
  return Array.from({ length: writes }, (_, index) => index + 1).flatMap((write) => [
    { write, isCommitted: false },
    { write, isCommitted: true },
  ]);
}
