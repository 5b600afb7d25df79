import type { ChildStatus } from '#contracts/child.ts';
import type { Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import type { Lane } from '../rows/lane-row.ts';
import { isChildLane, readChildIn, readLiveChildren } from './child-rows.ts';
import { wakeNext } from './class-room.ts';
import { finishChild } from './finish-child.ts';
import { cancelItemsOf, statusOfStop } from './stop-tree.ts';

/** Says whether the lane belongs to a child that has to stop; if so, cancels its waiting items. */
export async function isStoppingChild(tx: Tx, lane: Lane): Promise<boolean> {
  if (!isChildLane(lane.key)) return false;
  const child = await readChildIn(tx, lane.key);
  if (child === undefined || child.stopAt === null) return false;
  await cancelItemsOf(tx, lane.key);
  return true;
}

export type ChildRunEnd = {
  readonly endReason: string;
  /** Nothing waits in the lane. */
  readonly isIdle: boolean;
};

/**
 * Handles the end of a child's run: the child is finished if nothing of it continues, and in any case its class has
 * room for the next lane. The caller holds the locks of `lockLineage`.
 */
export async function endRunOfChild(
  tx: Tx,
  lane: Lane,
  { endReason, isIdle }: ChildRunEnd,
  effects: Effects,
): Promise<void> {
  if (!isChildLane(lane.key)) return;
  const child = await readChildIn(tx, lane.key);
  if (!child || child.state === 'done') return;
  await wakeNext(tx, lane, effects);
  if (child.stopAt !== null)
    return finishChild(tx, child, { status: statusOfStop(child.stopReason) }, effects);
  if (!isIdle || (await readLiveChildren(tx, { sessionIds: [child.id] })).length > 0) return;
  await finishChild(tx, child, { status: statusOfEnd(endReason) }, effects);
}

const stops: ReadonlySet<string> = new Set(['stop', 'revoked', 'reset', 'interrupt']);

/** Returns the status of a child whose last run ended for this reason. */
export function statusOfEnd(endReason: string | null): ChildStatus {
  if (endReason === 'natural') return 'completed';
  if (endReason === 'timeout') return 'timed-out';
  return endReason !== null && stops.has(endReason) ? 'stopped' : 'failed';
}
