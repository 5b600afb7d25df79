import { hasCode } from '#contracts/errors.ts';

/** Answers of the store to the questions of the loop and its tools. */
export type StoreWatch = {
  ask<T>(answer: Promise<T>): Promise<T>;
  /** Throws the fault of the store that a question has met. */
  check(): void;
};

/**
 * A run must not end because the store is away or another process has taken its lane. The loop ends the run when one
 * of its questions fails, and lets the model read that a tool has failed, though its effect may be stored; `check`
 * throws that fault before either is recorded, so the run stays as it is stored and the lane's next holder resumes it.
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
