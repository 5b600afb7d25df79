import type { StoreCommand } from '../base/command.ts';

/**
 * Records that the task's files show this revision. False if the task has changed since: then they have to be written
 * again, since another process may have written them before this one did. Safe to repeat.
 */
export const markTaskShown: StoreCommand<{ readonly taskId: string; readonly revision: number }, boolean> = {
  name: 'markTaskShown',
  run: async (tx, { taskId, revision }) => {
    const marked = await tx.db
      .updateTable('tasks')
      .set({ isUnshown: 0 })
      .where('id', '=', taskId)
      .where('revision', '=', revision)
      .returning('id')
      .executeTakeFirst();
    return marked !== undefined;
  },
};
