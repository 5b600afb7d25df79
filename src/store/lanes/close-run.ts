import type { Outcome } from '#contracts/outcome.ts';
import type { Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { endRunOfChild, isStoppingChild } from '../children/end-child-run.ts';
import { stopTree } from '../children/stop-tree.ts';
import { endTaken } from '../rows/item-states.ts';
import { endLaneRun } from '../rows/lane-leases.ts';
import type { Lane } from '../rows/lane-row.ts';
import { finishRun } from '../rows/run-states.ts';
import { endTitleRun } from './titles.ts';

export type CloseRunInput = {
  readonly runId: string;
  readonly endReason: string;
  readonly detail?: string | undefined;
  /** Outcome of the items it took and didn't answer; absent if there are none. */
  readonly outcome?: Outcome;
  readonly outcomeReason?: string | undefined;
  /** How many parts its last step stored, under the next ordinals and timeline positions. */
  readonly parts: number;
  /** Whether the holder may continue with due items; otherwise it yields to other lanes. */
  readonly mayKeepLane: boolean;
  readonly effects: Effects;
};

/** How a lane is left. There is no fourth case. */
export type LaneExit =
  | { readonly kind: 'idle' }
  | { readonly kind: 'continuing' }
  | { readonly kind: 'armed'; readonly delayMs: number };

/**
 * Ends the run and leaves the lane idle, continuing or armed. `waiting` lists the lane's waiting items, read under its
 * lock, so a message either arrived earlier and is seen here, or finds no run.
 */
export async function closeRun(
  tx: Tx,
  lane: Lane,
  closing: CloseRunInput,
  waiting: readonly { readonly dueAt: number }[],
): Promise<LaneExit> {
  const { runId, endReason, detail = null, outcome, outcomeReason = null, parts, effects } = closing;
  await endTitleRun(tx, lane, { runId, endReason });
  await finishRun(tx, { runId, endReason, detail, parts });
  if (outcome !== undefined) await endTaken(tx, runId, { outcome, outcomeReason });
  const left = (await isStoppingChild(tx, lane)) ? [] : waiting;
  const next = lookAhead(left, tx.now);
  const isKept = next.kind === 'continuing' && closing.mayKeepLane;
  await endLaneRun(tx, { laneKey: lane.key, parts }, isKept);
  await endRunOfChild(tx, lane, { endReason, isIdle: next.kind === 'idle' }, effects);
  return next.kind === 'continuing' && !closing.mayKeepLane ? { kind: 'armed', delayMs: 0 } : next;
}

/**
 * Stops the sub-agents that a run has spawned, when the run itself doesn't end naturally. Call it while only lanes are
 * locked: before sessions, budgets and conversations.
 */
export async function stopChildrenOf(tx: Tx, lane: Lane, runId: string, effects: Effects): Promise<void> {
  await stopTree(tx, { sessionId: lane.sessionId, runIds: [runId], reason: 'parent-ended' }, effects);
}

function lookAhead([head]: readonly { readonly dueAt: number }[], now: number): LaneExit {
  if (!head) return { kind: 'idle' };
  return head.dueAt <= now ? { kind: 'continuing' } : { kind: 'armed', delayMs: head.dueAt - now };
}
