import type { ChildStatus } from '#contracts/child.ts';
import type { Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import type { Lane } from '../rows/lane-row.ts';
import { isChildLane, readChildIn, readLiveChildren } from './child-rows.ts';
import { wakeNext } from './class-room.ts';
import { finishChild } from './finish-child.ts';
import { cancelItemsOf, statusOfStop } from './stop-tree.ts';

/** Whether the lane is that of a child which has to stop; what waits there is then cancelled. */
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
 * After a run of a child: if nothing of the child goes on, it is finished; in any case its class has room for
 * the next. The caller holds the locks of `lockLineage`.
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

const stops: ReadonlySet<string> = new Set(['stop', 'reset', 'interrupt']);

/** How a child ended whose last run ended so. */
export function statusOfEnd(endReason: string | null): ChildStatus {
  if (endReason === 'natural') return 'completed';
  if (endReason === 'timeout') return 'timed-out';
  return endReason !== null && stops.has(endReason) ? 'stopped' : 'failed';
}
