/** Merges the events of several running tools into one sequence that a generator can pass on. */
export interface EventFeed<T> {
  push(item: T): void;
  /** Returns everything pushed since the last call; waits until there is something. One reader only. */
  take(): Promise<readonly T[]>;
}

export function createEventFeed<T>(): EventFeed<T> {
  let items: T[] = [];
  let wake: (() => void) | undefined;

  return {
    push: (item) => {
      items.push(item);
      wake?.();
    },
    take: async () => {
      if (items.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = undefined;
      }
      const taken = items;
      items = [];
      return taken;
    },
  };
}
