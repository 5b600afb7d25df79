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
