import { setImmediate as othersHadTheirTurn } from 'node:timers/promises';

/** As long as one may hold the event loop before others have their turn, ms. */
const turnMs = 10;

/**
 * Returns a function to call between two pieces of work: it lets everybody else have their turn of the event loop
 * whenever the work since the last one has taken 10 ms. `now`: a clock that only goes forward, ms.
 */
export function takingTurns(now: () => number = () => performance.now()): () => Promise<void> {
  let since = now();
  return async () => {
    if (now() - since < turnMs) return;
    await othersHadTheirTurn();
    since = now();
  };
}
