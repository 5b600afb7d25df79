/** Does something when it is its turn. */
export type Limit = <T>(work: () => Promise<T>) => Promise<T>;

/** Creates a limit on how many do something at once; the others wait, first come first served. */
export function createLimit(maxAtOnce: number): Limit {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    while (running >= maxAtOnce) await new Promise<void>((resolve) => waiting.push(resolve));
    running += 1;
    try {
      return await work();
    } finally {
      running -= 1;
      waiting.shift()?.();
    }
  };
}
