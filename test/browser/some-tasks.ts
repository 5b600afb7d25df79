/** Tasks for the page to show. */
import { randomUUID } from 'node:crypto';
import type { SubtaskState, SubtaskView, TaskActivity } from '../../src/contracts/task.ts';

/** Returns a builder of subtasks that were dispatched half a minute before `at`. */
export function aNode(at: number) {
  return (
    id: string,
    state: SubtaskState,
    dependsOn: readonly string[] = [],
    over: Partial<SubtaskView> = {},
  ): SubtaskView => {
    const hasStarted = state !== 'pending' && state !== 'skipped';
    return {
      ...{ id, agent: 'main', state, dependsOn, onFailure: 'fail', name: `do ${id}` },
      ...{ tries: hasStarted ? 1 : 0, tokens: hasStarted ? 1_200 : 0, cost: hasStarted ? 2_100 : 0 },
      ...(hasStarted && { startedAt: at - 30_000, childId: `child-of-${id}` }),
      ...(hasStarted && state !== 'dispatched' && { endedAt: at - 18_000 }),
      ...over,
    };
  };
}

/** Returns a task with these subtasks. */
export function aTask(subtasks: readonly SubtaskView[], over: Partial<TaskActivity> = {}): TaskActivity {
  return {
    ...{ id: randomUUID(), title: 'Compare three suppliers', agent: 'main', laneKey: 'a:lane' },
    ...{ mode: 'coordinating', state: 'executing', revision: 1, createdAt: Date.now() - 31_000, subtasks },
    ...over,
  };
}
