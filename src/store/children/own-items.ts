import type { StepTx, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { endItems } from '../rows/item.ts';
import type { Lane } from '../rows/lane.ts';
import { type Task, taskItemsOf } from '../tasks/task.ts';
import { cancelRun } from '../waits/parked.ts';

/** Items of a task in its coordinator's lane, by source keys. The caller holds the lane's lock. */
export type OwnItems = {
  readonly waiting: readonly { readonly id: string; readonly sourceKey: string }[];
  /** That of the active run; undefined if it works on something else. */
  readonly running: string | undefined;
};

/** Reads the task's items that wait in its coordinator's lane, and the one that its run works on. */
export async function readOwnItems(tx: Tx, { id, laneKey }: Pick<Task, 'id' | 'laneKey'>): Promise<OwnItems> {
  const isOwn = (sourceKey: string | null) => sourceKey?.startsWith(taskItemsOf(id)) === true;
  const waiting = await waitingItems.all(tx, { laneKey });
  const run = await activeRun.first(tx, { laneKey });
  return {
    waiting: waiting.flatMap(({ id: item, sourceKey }) =>
      sourceKey !== null && isOwn(sourceKey) ? [{ id: item, sourceKey }] : [],
    ),
    running: run && isOwn(run.taskItem) ? (run.taskItem ?? undefined) : undefined,
  };
}

const waitingItems = prepared((db, of: QueryParams<{ laneKey: string }>) =>
  db
    .selectFrom('inbox')
    .select(['id', 'sourceKey'])
    .where('laneKey', '=', of.laneKey)
    .where(isOpenItem())
    .where('source', '=', 'task'),
);

const activeRun = prepared((db, of: QueryParams<{ laneKey: string }>) =>
  db
    .selectFrom('lanes')
    .innerJoin('runs', 'runs.id', 'lanes.runId')
    .select('runs.taskItem')
    .where('lanes.key', '=', of.laneKey),
);

/** Ends waiting items of the task that nobody wants any more. */
export async function cancelWaitingItems(
  tx: Tx,
  { waiting }: OwnItems,
  isWanted: (sourceKey: string) => boolean = () => false,
): Promise<void> {
  const gone = waiting.filter(({ sourceKey }) => !isWanted(sourceKey));
  const cancelled = { outcome: 'cancelled', outcomeReason: 'stop' } as const;
  await endItems(
    tx,
    gone.map(({ id }) => id),
    cancelled,
  );
}

/** Asks the run to stop that works on an item of the task which nobody wants any more. */
export async function cancelOwnRun(
  tx: StepTx,
  lane: Lane,
  { running }: OwnItems,
  { isWanted, effects }: { isWanted(sourceKey: string): boolean; readonly effects: Effects },
): Promise<void> {
  if (running !== undefined && !isWanted(running)) await cancelRun(tx, lane, { reason: 'stop', effects });
}
