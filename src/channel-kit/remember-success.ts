/**
 * Returns a function that makes the call until it has succeeded once, and gives that result from then on. Calls at the
 * same time share one. A failure isn't remembered: it may be one of a moment, such as too many open files.
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
