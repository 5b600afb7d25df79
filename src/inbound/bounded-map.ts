/**
 * A map that evicts its least recently used entry. Meant for counters per sender: a flood of senders costs the oldest
 * counters, not memory.
 */
export type BoundedMap<Value> = {
  /** Also counts as a use. */
  get(key: string): Value | undefined;
  set(key: string, value: Value): void;
  readonly size: number;
};

export function createBoundedMap<Value>(maxEntries: number): BoundedMap<Value> {
  // A Map iterates in insertion order, so its first key is the one used least recently.
  const entries = new Map<string, Value>();
  const put = (key: string, value: Value) => {
    entries.delete(key);
    entries.set(key, value);
  };
  return {
    get(key) {
      const value = entries.get(key);
      if (value !== undefined) put(key, value);
      return value;
    },
    set(key, value) {
      put(key, value);
      if (entries.size <= maxEntries) return;
      const [oldest] = entries.keys();
      if (oldest !== undefined) entries.delete(oldest);
    },
    get size() {
      return entries.size;
    },
  };
}
