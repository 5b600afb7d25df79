import type { StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { archiveChild, type Child, readChild, readLiveChildren } from '../children/child-rows.ts';
import { statusOfEnd } from '../children/end-child-run.ts';
import { finishChild } from '../children/finish-child.ts';
import { lockLineage } from '../children/lock-lineage.ts';
import { cancelItemsOf, statusOfStop, stopBranch } from '../children/stop-tree.ts';
import type { Lane } from '../rows/lane-row.ts';
import { giveUpRun } from './give-up-run.ts';

/** How long a child stays in the lists of recent ones after its end, ms. */
export const archiveAfterMs = 60 * 60_000;

/**
 * Applies a child's time limits: stops it past its deadline, fences it if it was asked to stop and hasn't, ends it when
 * it has nothing left to do, and archives it long after its end. Safe to repeat.
 */
export const sweepChild: StoreCommand<{ readonly childId: string }, Effects> = {
  name: 'sweepChild',
  run: async (tx, { childId }) => {
    const effects = noEffects();
    const seen = await readChild(tx, childId);
    const lane = seen && (await lockLineage(tx, seen.laneKey));
    const child = lane && (await readChild(tx, childId));
    if (!child) return effects;
    if (child.endedAt !== null) {
      if (child.endedAt + archiveAfterMs <= tx.now) await archiveChild(tx, childId);
    } else if (child.stopAt !== null) {
      if (child.stopAt <= tx.now) return fence(tx, lane, child);
    } else if (child.deadlineAt <= tx.now) {
      await stopBranch(tx, child, 'timeout', effects);
    } else if (await isAtRest(tx, lane, child)) {
      await finishChild(tx, child, { status: await statusOfRest(tx, child) }, effects);
    }
    return effects;
  },
};

/** Ends the child's run from the store's point of view, whatever its holder still does. */
async function fence(tx: Tx, lane: Lane, child: Child): Promise<Effects> {
  if (lane.runId !== null) {
    const run = { id: lane.runId, route: null };
    return giveUpRun(tx, { ...lane, epoch: lane.epoch + 1 }, { run, text: '', ...stoppedLate });
  }
  const effects = noEffects();
  await cancelItemsOf(tx, lane.key);
  await finishChild(tx, child, { status: statusOfStop(child.stopReason) }, effects);
  return effects;
}

const stoppedLate = { endReason: 'stop', detail: 'it was asked to stop but did not do so in time' } as const;

/** Says whether the child has nothing left to do: no run, no waiting items and no children. */
async function isAtRest(tx: Tx, lane: Lane, child: Child): Promise<boolean> {
  if (lane.runId !== null) return false;
  const waiting = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('laneKey', '=', lane.key)
    .where(isOpenItem())
    .limit(1)
    .executeTakeFirst();
  return waiting === undefined && (await readLiveChildren(tx, { sessionIds: [child.id] })).length === 0;
}

/** Returns the status of its last run; a child that never had one is lost. */
async function statusOfRest(tx: Tx, child: Child) {
  const run = await tx.db
    .selectFrom('inbox')
    .innerJoin('runs', 'runs.id', 'inbox.runId')
    .select('runs.endReason')
    .where('inbox.laneKey', '=', child.laneKey)
    .where('inbox.runId', 'is not', null)
    .orderBy('runs.startedAt', 'desc')
    .executeTakeFirst();
  return run ? statusOfEnd(run.endReason) : 'lost';
}
