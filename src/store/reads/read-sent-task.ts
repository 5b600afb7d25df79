import { parseJson } from '#channel-kit/parse-json.ts';
import type { TaskState } from '#contracts/task.ts';
import type { StoreQuery } from '../base/command.ts';
import { readTask } from '../tasks/task.ts';

/** A task that came as a message, as far as its sender needs to know it. */
export type SentTask = {
  readonly laneKey: string;
  readonly agent: string;
  readonly state: TaskState;
  readonly head: { readonly taskId: string; readonly subtaskId: string; readonly from: string };
  readonly result: string | undefined;
  readonly error: string | undefined;
};

/** Reads it; undefined when no message has that id. */
export const findSentTask: StoreQuery<{ readonly taskId: string }, SentTask | undefined> = {
  query: 'findSentTask',
  run: async (tx, { taskId }) => {
    const task = await readTask(tx, taskId);
    if (task?.head == null) return undefined;
    const { laneKey, agentId: agent, state, result, error } = task;
    // `acceptTask` wrote the head.
    const head = parseJson(task.head) as SentTask['head'];
    return { laneKey, agent, state, head, result: result ?? undefined, error: error ?? undefined };
  },
};
