/** Limits a property to about a second in everyday runs; with PARLEY_LONG=1, it runs its full count. */
export function budget(numRuns: number) {
  return process.env.PARLEY_LONG === '1' ? { numRuns } : { numRuns, interruptAfterTimeLimit: 1000 };
}
