import { patienceMs } from '../../support/patience.ts';
import type { ChannelHarness } from './harness.ts';
import { NotPlayed, type Times, Trial } from './trial.ts';

/** One rule for every channel. `name` is unique among the checks and states the rule. */
export type ContractCheck = {
  readonly group: string;
  readonly name: string;
  /** Rejects when the rule is broken. */
  readonly run: (trial: Trial) => Promise<void>;
};

/** Builds the checks of one group: each rule is a sentence and the function that checks it. */
export function checksOf(
  group: string,
  rules: Readonly<Record<string, ContractCheck['run']>>,
): readonly ContractCheck[] {
  return Object.entries(rules).map(([name, run]) => ({ group, name, run }));
}

export type Verdict =
  | { readonly kind: 'kept' }
  | { readonly kind: 'broken'; readonly error: unknown }
  /** The platform can't simulate what the rule is about. */
  | { readonly kind: 'not-played' };

/** Watching lasts long enough for another round trip or twenty. */
const soundTimes: Times = { patienceMs, watchMs: 100 };

/** Checks one rule on a fresh platform and cleans up afterwards. */
export async function tryCheck(
  check: ContractCheck,
  setup: () => Promise<ChannelHarness>,
  times = soundTimes,
): Promise<Verdict> {
  const trial = new Trial(await setup(), times);
  const verdict = await judge(check, trial);
  try {
    await trial.adapter.stop();
  } catch (error) {
    return { kind: 'broken', error };
  } finally {
    await trial.harness.close();
  }
  return verdict;
}

async function judge(check: ContractCheck, trial: Trial): Promise<Verdict> {
  try {
    await check.run(trial);
    return { kind: 'kept' };
  } catch (error) {
    return error instanceof NotPlayed ? { kind: 'not-played' } : { kind: 'broken', error };
  }
}
