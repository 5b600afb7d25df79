import type { StepTx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { type ClaimedRun, type ClaimInput, claimLane } from './claim-lane.ts';

/** Whose slots are free, and how many: one new run id for each. */
export type ClaimTerms = Omit<ClaimInput, 'laneKey' | 'newRunId'> & {
  readonly newRunIds: readonly string[];
  /** Only lanes of this class. */
  readonly class: string;
};

/**
 * Claims, in the transaction that makes them due, the lanes that the caller can work at once: no second
 * commit stands between a message and its run. What is not claimed stays in `effects.wakes`.
 */
export async function claimDue(
  tx: StepTx,
  terms: ClaimTerms,
  effects: Effects,
): Promise<readonly ClaimedRun[]> {
  const { newRunIds, ...claim } = terms;
  const runs: ClaimedRun[] = [];
  const left: Effects['wakes'] = [];
  const seen = new Set<string>();
  for (const wake of effects.wakes) {
    if (seen.has(wake.laneKey)) continue;
    const newRunId = newRunIds[runs.length];
    if (newRunId === undefined || wake.delayMs > 0 || wake.class !== terms.class) {
      left.push(wake);
      continue;
    }
    seen.add(wake.laneKey);
    const claimed = await claimLane.run(tx, { ...claim, laneKey: wake.laneKey, newRunId });
    if (claimed.kind === 'again') effects.deliveries.push(...claimed.effects.deliveries);
    if (claimed.kind === 'run') runs.push(claimed.run);
    else left.push(wake);
  }
  effects.wakes.splice(0, effects.wakes.length, ...left);
  return runs;
}
