export type Backoff = { readonly firstMs: number; readonly longestMs: number };

/** Returns the wait, ms, after `failures` in a row, from 1. It doubles with each, up to the longest. */
export function backoffMs(failures: number, { firstMs, longestMs }: Backoff): number {
  return Math.min(longestMs, firstMs * 2 ** Math.min(Math.max(0, failures - 1), 30));
}

/**
 * Waits after a refusal that a person usually has to fix, such as a revoked token: 1, 5, 15 minutes, then
 * every 15. Retries never end, since the refusal may have been the other side's mistake.
 */
const stepsMs = [60_000, 300_000, 900_000] as const;

/** Keeps gateways that were refused at the same time from all coming back at the same time. */
const jitterShare = 0.1;

/**
 * Returns the wait, ms, before the next attempt. `refusals`: how many in a row, from 1. `random`: returns a number in
 * [0, 1), by which up to a tenth of the step is added.
 */
export function slowRetryMs(refusals: number, random: () => number = Math.random): number {
  const step = stepsMs[Math.min(stepsMs.length, Math.max(1, refusals)) - 1] ?? stepsMs[2];
  return Math.round(step * (1 + jitterShare * random()));
}
