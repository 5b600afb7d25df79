import type { TranscriptMessage } from '#contracts/message.ts';
import { isCounted } from '../agent/call-pairs.ts';
import type { Store } from '../store/base/command.ts';
import { type ChildRun, readChildRun } from '../store/children/read-child-run.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { readForkedHistory, readHistory } from '../store/reads/read-transcript.ts';

/** A sub-agent's role, fork and deadline; undefined for every other run, which costs no read. */
export async function childRunOf(store: Store, run: ClaimedRun): Promise<ChildRun | undefined> {
  if (!run.class.startsWith('sub-')) return undefined;
  return store.read(readChildRun, { sessionId: run.sessionId });
}

/** History that the run's model is shown: a forked sub-agent's begins with its parent's, up to the spawn. */
export async function runHistory(
  store: Store,
  { sessionId }: ClaimedRun,
  child: ChildRun | undefined,
): Promise<readonly TranscriptMessage[]> {
  const [before, own] = await Promise.all([
    child?.fork ? store.read(readForkedHistory, child.fork) : [],
    store.read(readHistory, { sessionId }),
  ]);
  // Text interrupted by a crash has left the context; the run writes it again.
  return [...before, ...own].filter(isCounted);
}

/** How long the run may still work, ms. Time spent parked doesn't count, but for a sub-agent's deadline. */
export function timeLeft(
  limitMs: number,
  { workedMs, now }: Pick<ClaimedRun, 'workedMs' | 'now'>,
  child: Pick<ChildRun, 'deadlineAt'> | undefined,
): number {
  const untilDeadline = child === undefined ? limitMs : child.deadlineAt - now;
  // An exhausted limit ends the run at once.
  return Math.max(1, Math.min(limitMs - workedMs, untilDeadline));
}
