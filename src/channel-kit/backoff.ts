export type Backoff = { readonly firstMs: number; readonly longestMs: number };

/** Returns the wait, ms, after `failures` in a row, from 1. It doubles with each, up to the longest. */
export function backoffMs(failures: number, { firstMs, longestMs }: Backoff): number {
  return Math.min(longestMs, firstMs * 2 ** Math.min(Math.max(0, failures - 1), 30));
}
