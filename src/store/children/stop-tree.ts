import type { StepTx, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { endItems } from '../rows/item.ts';
import { type Lane, lockLane, lockLanes } from '../rows/lane.ts';
import { readOpenTasks } from '../tasks/task.ts';
import { cancelRun } from '../waits/parked.ts';
import {
  type Child,
  isChildLane,
  markStopping,
  readChild,
  readChildIn,
  readLiveChildren,
  statusOfEnd,
} from './child.ts';
import { wakeNext } from './class-room.ts';
import { finishChild, isCascade } from './finish-child.ts';
import { stopTasks } from './subtasks.ts';

/** Why children are stopped: by a person, a reset or the end of the run above them, or one of them on its own. */
export type StopReason = 'stop' | 'reset' | 'parent-ended' | 'asked' | 'timeout';

/** How long a run has to end on its own, ms; then a sweep fences it, so that nothing keeps running after 10 s. */
const stopGraceMs = 8_000;

/** Why the tasks of a stopped tree have failed, for people. */
const wordsFor: Readonly<Record<StopReason, string>> = {
  ...{ stop: 'stopped', asked: 'stopped', reset: 'stopped by a new conversation' },
  'parent-ended': 'stopped with the run above it',
  timeout: 'out of time',
};

export type TreeStop = {
  readonly sessionId: string;
  readonly reason: StopReason;
  /** Only the children that these runs have spawned. */
  readonly runIds?: readonly string[];
};

export type StoppedTree = { readonly queued: number; readonly active: number };

/**
 * Stops everything below the session: queued children end immediately, active ones are asked to stop and are fenced if
 * they don't. The caller has locked the session's own lane and those above it. The lanes below are locked level by
 * level; a locked lane can't spawn more children.
 */
export async function stopTree(tx: StepTx, stop: TreeStop, effects: Effects): Promise<StoppedTree> {
  const children: Child[] = [];
  const levels: Level[] = [{ sessionIds: [stop.sessionId], runIds: stop.runIds }];
  for (const of of levels) {
    const level = await lockLevel(tx, of);
    children.push(...level);
    if (level.length > 0) levels.push({ sessionIds: level.map(({ id }) => id) });
  }
  for (const of of levels) await stopTasks(tx, { ...of, reason: wordsFor[stop.reason] }, effects);
  const queued = children.filter(({ state }) => state === 'queued');
  const active = children.filter(({ state }) => state !== 'queued');
  for (const child of [...queued, ...active.toReversed()]) await stopOne(tx, child, stop.reason, effects);
  return { queued: queued.length, active: active.length };
}

/** Locks all lanes below the sessions, level by level, so that a step that stops several trees keeps the lock order. */
export async function lockBelow(tx: Tx, sessionIds: readonly string[]): Promise<void> {
  for (let above = sessionIds; above.length > 0; )
    above = (await lockLevel(tx, { sessionIds: above })).map(({ id }) => id);
}

type Level = { readonly sessionIds: readonly string[]; readonly runIds?: readonly string[] | undefined };

/** Locks the lanes of a level and reads its children again, since some may have ended meanwhile. */
async function lockLevel(tx: Tx, level: Level): Promise<readonly Child[]> {
  const seen = await readLiveChildren(tx, level);
  if (tx.dialect !== 'postgres' || seen.length === 0) return seen;
  await lockLanes(
    tx,
    seen.map(({ laneKey }) => laneKey),
  );
  return readLiveChildren(tx, level);
}

/** Stops one child and everything below it. The caller holds the locks of `lockLineage`. */
export async function stopBranch(
  tx: StepTx,
  child: Child,
  reason: 'asked' | 'timeout',
  effects: Effects,
): Promise<StoppedTree> {
  const below = await stopTree(tx, { sessionId: child.id, reason: 'parent-ended' }, effects);
  await stopOne(tx, child, reason, effects);
  const isQueued = child.state === 'queued';
  return { queued: below.queued + (isQueued ? 1 : 0), active: below.active + (isQueued ? 0 : 1) };
}

async function stopOne(tx: StepTx, child: Child, reason: StopReason, effects: Effects): Promise<void> {
  const overrides = isCascade(reason);
  const marked = await markStopping(tx, child, { reason, stopAt: tx.now + stopGraceMs, overrides });
  effects.stoppedChildren.push(child.id);
  await cancelItemsOf(tx, child.laneKey);
  const lane = await lockLane(tx, child.laneKey);
  if (lane && lane.runId !== null) return cancelRun(tx, lane, { reason: 'stop', effects });
  await finishChild(tx, marked, { status: statusOfStop(marked.stopReason) }, effects);
}

/** Returns the status of a child that was asked to stop. */
export function statusOfStop(reason: string | null): 'timed-out' | 'stopped' {
  return reason === 'timeout' ? 'timed-out' : 'stopped';
}

/** Ends the waiting items of a lane that takes no more. */
export async function cancelItemsOf(tx: Tx, laneKey: string): Promise<void> {
  const rows = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('laneKey', '=', laneKey)
    .where(isOpenItem())
    .execute();
  const ids = rows.map(({ id }) => id);
  await endItems(tx, ids, { outcome: 'cancelled', outcomeReason: 'stop' });
}

/** Reads the child with that id, if it hasn't ended. */
export async function readLive(tx: Tx, id: string): Promise<Child | undefined> {
  const child = await readChild(tx, id);
  return child?.state === 'done' ? undefined : child;
}

/** Says whether the lane belongs to a child that has to stop; if so, cancels its waiting items. */
export async function isStoppingChild(tx: StepTx, lane: Lane): Promise<boolean> {
  if (!isChildLane(lane.key)) return false;
  const child = await readChildIn(tx, lane.key);
  if (child === undefined || child.stopAt === null) return false;
  await cancelItemsOf(tx, lane.key);
  return true;
}

type ChildRunEnd = {
  readonly endReason: string;
  /** Nothing waits in the lane. */
  readonly isIdle: boolean;
};

/**
 * Handles the end of a child's run: the child is finished if nothing of it continues, and in any case its class has
 * room for the next lane. The caller holds the locks of `lockLineage`.
 */
export async function endRunOfChild(
  tx: StepTx,
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
  if (!isIdle || (await hasWorkBelow(tx, child.id))) return;
  await finishChild(tx, child, { status: statusOfEnd(endReason) }, effects);
}

/** Says whether sub-agents or tasks of the session are still open. */
export async function hasWorkBelow(tx: Tx, sessionId: string): Promise<boolean> {
  const of = { sessionIds: [sessionId] };
  return (await readLiveChildren(tx, of)).length > 0 || (await readOpenTasks(tx, of)).length > 0;
}
