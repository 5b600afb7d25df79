import { setImmediate as nextTurn } from 'node:timers/promises';

const sliceMs = 5;

/**
 * Lets the event loop breathe between pieces of long work: the function waits for the loop's next turn when
 * 5 ms have passed since it last did.
 */
export function createTimeSlice(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < sliceMs) return;
    await nextTurn();
    since = performance.now();
  };
}
