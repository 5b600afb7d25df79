/** Puts an entry after the others, and removes the oldest if there are more than `most`. */
export function keepRecent<K, V>(map: Map<K, V>, most: number, [key, value]: readonly [K, V]): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.size > most ? map.keys().next() : undefined;
  if (oldest?.done === false) map.delete(oldest.value);
}

/**
 * Returns a function that makes the call until it has succeeded once, and returns that result from then on. Concurrent
 * calls share one attempt. A failure isn't remembered, since it may be temporary, such as too many open files.
 */
export function rememberSuccess<T>(call: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= call().catch((error: unknown) => {
      result = undefined;
      throw error;
    });
    return result;
  };
}
