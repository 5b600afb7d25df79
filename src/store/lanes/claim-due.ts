import type { StepTx } from '../base/command.ts';
import { addEffects, type Effects } from '../base/effects.ts';
import { isChildLane } from '../children/child.ts';
import {
  type ClaimedRun,
  type ClaimFacts,
  type ClaimInput,
  claimBy,
  claimLane,
  lockForClaims,
} from './claim-lane.ts';

/** The claiming holder and its free slots, each with a new run id. */
export type ClaimTerms = Omit<ClaimInput, 'laneKey' | 'newRunId'> & {
  readonly newRunIds: readonly string[];
  /** Only lanes of this class are claimed. */
  readonly class: string;
};

/**
 * Claims the lanes that the caller has slots for in the same transaction that makes them due, which saves a second
 * commit between a message and its run. Wakes of unclaimed lanes stay in `effects.wakes`. `isLate`: a conversation may
 * already be locked, so lanes are left out if their claim may lock sub-agents' lanes, by ending a run or by a command.
 */
export async function claimDue(
  tx: StepTx,
  terms: ClaimTerms,
  effects: Effects,
  isLate = false,
): Promise<readonly ClaimedRun[]> {
  const { newRunIds, ...claim } = terms;
  const runs: ClaimedRun[] = [];
  const left: Effects['wakes'] = [];
  const seen = new Set<string>();
  const isDue = ({ delayMs, class: laneClass }: Wake) => delayMs <= 0 && laneClass === terms.class;
  const facts = await lockAhead(tx, effects.wakes.filter(isDue).slice(0, newRunIds.length));
  for (const wake of effects.wakes) {
    if (seen.has(wake.laneKey)) continue;
    const newRunId = newRunIds[runs.length];
    if (newRunId === undefined || !isDue(wake)) {
      left.push(wake);
      continue;
    }
    seen.add(wake.laneKey);
    const known = facts.get(wake.laneKey);
    if (isLate && !beginsRun(known)) {
      left.push(wake);
      continue;
    }
    const input = { ...claim, laneKey: wake.laneKey, newRunId };
    const claimed = await (known ? claimBy(tx, input, known) : claimLane.run(tx, input));
    if (claimed.kind === 'again') {
      const { wakes, ...others } = claimed.effects;
      left.push(...wakes);
      addEffects(effects, { ...others, wakes: [] });
      // A command, or the end of a run, may have changed other lanes too.
      facts.clear();
    }
    if (claimed.kind !== 'run') {
      left.push(wake);
      continue;
    }
    runs.push(claimed.run);
    if (claimed.expired) addEffects(effects, { ...claimed.expired, wakes: [] });
  }
  effects.wakes.splice(0, effects.wakes.length, ...left);
  return runs;
}

function beginsRun(facts: ClaimFacts | undefined): boolean {
  return facts?.lane.runId === null && facts.waiting[0]?.kind === 'message';
}

type Wake = Effects['wakes'][number];

/**
 * Reads the lanes' facts in one round trip. A sub-agent's lane is read only after the preceding claims, since its class
 * has a limit.
 */
async function lockAhead(tx: StepTx, wakes: readonly Wake[]): Promise<Map<string, ClaimFacts>> {
  const keys = [...new Set(wakes.map(({ laneKey }) => laneKey))].filter((key) => !isChildLane(key));
  return keys.length === 0 ? new Map() : lockForClaims(tx, keys);
}
