/** Limits how many lanes a process works at once. Waiting callers are served first, in order of arrival. */
export interface Slots {
  /** Takes the slots that are free now, at most `most`, and returns how many. */
  takeFree(most: number): number;
  /** Waits for a slot. */
  take(): Promise<void>;
  /** Waits for a slot, but at most this long, ms; resolves with false if none was free by then. */
  takeWithin(ms: number): Promise<boolean>;
  release(count?: number): void;
}

export function createSlots(count: number): Slots {
  let free = count;
  /** Waiting callers in order of arrival; empty while a slot is free. */
  const waiting = new Set<() => void>();
  const takeFree = (most: number) => {
    const taken = Math.min(most, free);
    free -= taken;
    return taken;
  };
  return {
    takeFree,
    take: async () => {
      if (takeFree(1) === 0) await new Promise<void>((resolve) => waiting.add(resolve));
    },
    takeWithin: async (ms) => {
      if (takeFree(1) === 1) return true;
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const begin = () => resolve(true);
      waiting.add(begin);
      const timer = setTimeout(() => resolve(!waiting.delete(begin)), ms).unref();
      return promise.finally(() => clearTimeout(timer));
    },
    release: (released = 1) => {
      free += released;
      for (const begin of waiting) {
        if (takeFree(1) === 0) return;
        waiting.delete(begin);
        begin();
      }
    },
  };
}
