import type { Log } from '#contracts/log.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { settleTask } from '../store/delegation/settle-task.ts';

/** Settles tasks of which a step has left something. The sweep finds all of them, too. */
export interface TaskSettler {
  /** Never waits, never throws. */
  settle(taskId: string): void;
}

/** Creates the settler. A task that is settled right now is settled once more. */
export function createTaskSettler(deps: {
  readonly store: Store;
  readonly log: Log;
  start(effects: Effects): void;
}): TaskSettler {
  const settling = new Map<string, { isAgain: boolean }>();
  const settle = async (taskId: string) => {
    const mine = { isAgain: false };
    settling.set(taskId, mine);
    try {
      do {
        mine.isAgain = false;
        deps.start(await deps.store.write(settleTask, { taskId }));
      } while (mine.isAgain);
    } catch (error) {
      deps.log.warn({ taskId, error }, 'task.not-settled');
    } finally {
      settling.delete(taskId);
    }
  };
  return {
    settle: (taskId) => {
      const running = settling.get(taskId);
      if (running) running.isAgain = true;
      else void settle(taskId);
    },
  };
}
