/** How many lanes a process works at once. Waiting callers are served first, in order of arrival. */
export interface Slots {
  /** Takes what is free now, at most `most`; returns how many. */
  takeFree(most: number): number;
  /** Waits for one. */
  take(): Promise<void>;
  release(count?: number): void;
}

export function createSlots(count: number): Slots {
  let free = count;
  const waiting: (() => void)[] = [];
  return {
    takeFree: (most) => {
      const taken = Math.min(most, free);
      free -= taken;
      return taken;
    },
    take: async () => {
      if (free > 0) {
        free -= 1;
        return;
      }
      await new Promise<void>((resolve) => waiting.push(resolve));
    },
    release: (released = 1) => {
      free += released;
      while (free > 0) {
        const next = waiting.shift();
        if (!next) return;
        free -= 1;
        next();
      }
    },
  };
}
