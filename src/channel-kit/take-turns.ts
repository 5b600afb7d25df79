import { setImmediate as othersHadTheirTurn } from 'node:timers/promises';

/** How long work may hold the event loop before others get their turn, ms. */
const turnMs = 10;

/**
 * Returns a function to call between pieces of work. It yields the event loop to others once the work since the last
 * yield has taken 10 ms. `now`: a monotonic clock, ms.
 */
export function createYielder(now: () => number = () => performance.now()): () => Promise<void> {
  let since = now();
  return async () => {
    if (now() - since < turnMs) return;
    await othersHadTheirTurn();
    since = now();
  };
}
