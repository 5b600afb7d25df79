/** A second or so in everyday runs; the full count with PARLEY_LONG=1. */
export function budget(numRuns: number) {
  return process.env.PARLEY_LONG === '1' ? { numRuns } : { numRuns, interruptAfterTimeLimit: 1000 };
}
