import { hasCode } from '#contracts/errors.ts';

/** Answers of the store to the loop's questions. */
export type StoreWatch = {
  ask<T>(answer: Promise<T>): Promise<T>;
  /** Throws the fault of the store that a question has met. */
  check(): void;
};

/**
 * A store that is away ends no run, and neither does a lane that is another's by now. The loop takes a fault of its
 * questions for the run's end; `check` throws it before that is recorded, so that the run stands as it is stored and
 * its next holder goes on.
 */
export function createStoreWatch(): StoreWatch {
  let fault: unknown;
  return {
    ask: async (answer) => {
      try {
        return await answer;
      } catch (error) {
        const isStores = (['store_unavailable', 'store_full', 'stale_epoch'] as const).some((code) =>
          hasCode(error, code),
        );
        if (isStores) fault ??= error;
        throw error;
      }
    },
    check: () => {
      if (fault !== undefined) throw fault;
    },
  };
}
