import { z } from 'zod';
import type { TaskView } from '#contracts/task.ts';
import { defineTool, type Tool, type ToolOutput, type ToolRun } from '#contracts/tool.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { mayDirect } from '../store/children/operate-child.ts';
import { stopTaskOrSubtask } from '../store/delegation/operate-task.ts';
import { findTaskRecord, readTasks } from '../store/reads/read-tasks.ts';

export type TasksToolDeps = { readonly store: Store; start(effects: Effects): void };

const inputSchema = z.object({
  action: z.enum(['list', 'show', 'stop']),
  task: z.string().trim().min(1).optional().describe('Id of the task, or the beginning of it.'),
  subtask: z.string().trim().min(1).optional().describe('show: its whole result. stop: only this one.'),
  offset: z.int().min(0).default(0).describe('For a long result: where to go on.'),
});

const listed = 50;
/** A result's characters in one answer; even in three bytes each they fit. */
const pageLength = 10_000;

/** Creates the tool that lists, shows and stops the tasks of the run's own session and of all sub-agents below it. */
export function createTasksTool({ store, start }: TasksToolDeps, run: ToolRun): Tool {
  return defineTool<z.infer<typeof inputSchema>>({
    name: 'tasks',
    description:
      'List the tasks that you have delegated; show one with its subtasks, or the whole result of a subtask; stop one. ' +
      'You get a turn when a task has ended: do not call this to wait for it.',
    inputSchema,
    parallelSafe: false,
    replay: 'safe',
    authority: 'guest',
    execute: async ({ action, task: named, subtask, offset }) => {
      const { sessionId, authority } = run;
      const tasks = await store.read(readTasks, { sessionId, limit: listed });
      if (action === 'list') return { text: JSON.stringify(tasks.map(summaryOf)) };
      const { id: taskId } = findTask(tasks, named);
      const task = await store.read(findTaskRecord, { taskId });
      if (!task) throw new Error(`There is no task ${taskId} any more.`);
      // In a group, one session serves people with different rights.
      if (!mayDirect(authority, task)) return { text: lesserRights };
      const node = subtask === undefined ? undefined : findSubtask(task, subtask);
      switch (action) {
        case 'show':
          return node ? resultOf(node.id, task.texts[node.id]?.result, offset) : shown(task);
        case 'stop': {
          const of = node ? { taskId, subtaskId: node.id } : { taskId };
          const { kind, effects } = await store.write(stopTaskOrSubtask, {
            ...of,
            by: run.agentId,
            authority,
          });
          start(effects);
          return {
            text:
              kind === 'done'
                ? 'Stopped.'
                : kind === 'lesser-rights'
                  ? lesserRights
                  : 'It has ended already.',
          };
        }
        default:
          return action satisfies never;
      }
    },
  });
}

const lesserRights =
  'It works with more rights than the person you are answering has: only people with the same rights may read or direct it.';

function findTask(tasks: readonly TaskView[], named: string | undefined): TaskView {
  const fitting = named === undefined ? tasks.filter(isOpen) : tasks.filter(({ id }) => id.startsWith(named));
  const [task] = fitting;
  if (task && fitting.length === 1) return task;
  const what =
    named === undefined ? `${fitting.length} open tasks` : `${fitting.length} tasks with an id like ${named}`;
  throw new Error(`You have ${what}; name one. list shows them.`);
}

function findSubtask({ subtasks }: TaskView, named: string): TaskView['subtasks'][number] {
  const subtask = subtasks.find(({ id }) => id === named);
  if (!subtask) throw new Error(`It has no subtask ${named}: ${subtasks.map(({ id }) => id).join(', ')}.`);
  return subtask;
}

function isOpen({ endedAt }: TaskView): boolean {
  return endedAt === undefined;
}

function summaryOf({ id, title, state, subtasks }: TaskView) {
  const ended = subtasks.filter((subtask) => subtask.endedAt !== undefined).length;
  return { id, title, state, subtasks: `${ended} of ${subtasks.length} ended` };
}

function shown({ id, title, state, error, subtasks }: TaskView): ToolOutput {
  const nodes = subtasks.map(({ id: name, agent, state: now, tries, dependsOn, error: why }) => ({
    ...{ id: name, agent, state: now, tries, dependsOn },
    ...(why !== undefined && { error: why }),
  }));
  return {
    text: JSON.stringify({ id, title, state, ...(error !== undefined && { error }), subtasks: nodes }),
  };
}

function resultOf(id: string, result: string | undefined, offset: number): ToolOutput {
  if (result === undefined) return { text: `${id} has no result yet.` };
  const page = result.slice(offset, offset + pageLength).toWellFormed();
  const end = offset + page.length;
  const more = end < result.length ? ` The next ones begin at offset ${end}.` : '';
  return {
    text: `Characters ${offset} to ${end} of ${result.length}.${more}`,
    untrusted: { about: `result of ${id}`, text: page },
  };
}
