import { hasCode } from '#contracts/errors.ts';

/** Watches the store's answers to the loop and its tools. */
export type StoreWatch = {
  ask<T>(answer: Promise<T>): Promise<T>;
  /** Throws the store's fault if an earlier question met one. */
  check(): void;
};

/**
 * A run must not end because the store is unreachable or another process has taken its lane. If one of its questions
 * fails, the loop would end the run, or tell the model that a tool failed even though its effect may be stored. `check`
 * throws the fault before either is recorded, so the run stays as stored and the lane's next holder resumes it.
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
