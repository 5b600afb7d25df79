/**
 * How long to wait after a refusal that a person usually has to mend, such as a revoked token: 1, 5, 15
 * minutes, then every 15. It never ends, since the refusal may have been a mistake of the other side.
 */
const stepsMs = [60_000, 300_000, 900_000] as const;

/** So that many gateways that were refused at once do not come back at once. */
const jitterShare = 0.1;

/**
 * The wait in ms before the next attempt. `refusals`: how many in a row, from 1. `random`: in [0, 1); up to a
 * tenth of the step is added for it.
 */
export function slowRetryMs(refusals: number, random: () => number = Math.random): number {
  const step = stepsMs[Math.min(stepsMs.length, Math.max(1, refusals)) - 1] ?? stepsMs[2];
  return Math.round(step * (1 + jitterShare * random()));
}
