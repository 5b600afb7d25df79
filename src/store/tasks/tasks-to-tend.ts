import type { Tx } from '../base/command.ts';
import { isOpenItem, isOpenTask, isUnsettledTask, isUnshownTask } from '../base/index-predicates.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';

/** Tasks for `settleTask`, and those that have changed since their files were written. */
export type TasksToTend = { readonly tasks: readonly string[]; readonly unshownTasks: readonly string[] };

/** Reads them, at most this many of each. */
export async function readTasksToTend(tx: Tx, most: number): Promise<TasksToTend> {
  const tasks = await tasksToSettle.all(tx, { most });
  const unshown = await unshownTasks.all(tx, { most });
  return { tasks: [...new Set(tasks.map(({ id }) => id))], unshownTasks: unshown.map(({ id }) => id) };
}

/**
 * Tasks of which a step has left something, and open ones that nothing works on any more: no run, no item, no peer. It
 * takes an operator to bring one there, who has cancelled an item.
 */
const tasksToSettle = prepared((db, of: QueryParams<{ most: number }>) =>
  db
    .selectFrom('tasks')
    .select('id')
    .where(isUnsettledTask())
    .unionAll(
      db
        .selectFrom('tasks')
        .innerJoin('lanes', 'lanes.key', 'tasks.laneKey')
        .select('tasks.id')
        .where(isOpenTask())
        .where('lanes.runId', 'is', null)
        .where((eb) =>
          eb.not(
            eb.exists(
              eb
                .selectFrom('inbox')
                .select('inbox.id')
                .whereRef('inbox.laneKey', '=', 'tasks.laneKey')
                .where(isOpenItem()),
            ),
          ),
        )
        .where((eb) =>
          eb.not(
            eb.exists(
              eb
                .selectFrom('children')
                .select('children.id')
                .whereRef('children.parentSessionId', '=', 'tasks.sessionId')
                .where('children.endedAt', 'is', null),
            ),
          ),
        ),
    )
    .limit(of.most),
);

const unshownTasks = prepared((db, of: QueryParams<{ most: number }>) =>
  db.selectFrom('tasks').select('id').where(isUnshownTask()).limit(of.most),
);
