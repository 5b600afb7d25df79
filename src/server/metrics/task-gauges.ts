import { Gauge, type Registry } from 'prom-client';
import type { OpenCounts } from '../../store/reads/read-open-counts.ts';
import type { Tally } from './tally.ts';

/** Counts of open tasks by state, and of tasks and subtasks that have ended. */
export type TaskCounts = Pick<OpenCounts, 'tasks'> & { readonly ended: Tally; readonly endedSubtasks: Tally };

const openStates = ['pending', 'in-progress', 'planning', 'executing', 'aggregating'] as const;

/** Registers the metrics of tasks. Pass `show` undefined while the store is unreachable. */
export function createTaskGauges(registry: Registry): { show(counted: TaskCounts | undefined): void } {
  const registers = [registry];
  const open = new Gauge({
    name: 'parley_tasks',
    help: 'Tasks that have not ended, by state.',
    labelNames: ['state'],
    registers,
  });
  const ended = new Gauge({
    name: 'parley_tasks_ended',
    help: 'Tasks that have ended, by state.',
    labelNames: ['state'],
    registers,
  });
  const subtasks = new Gauge({
    name: 'parley_subtasks_ended',
    help: 'Subtasks of tasks that have ended, by state.',
    labelNames: ['state'],
    registers,
  });
  return {
    show: (counted) => {
      for (const gauge of [open, ended, subtasks]) gauge.reset();
      if (counted === undefined) return;
      for (const state of openStates) open.set({ state }, counted.tasks[state] ?? 0);
      for (const state of ['done', 'failed']) ended.set({ state }, counted.ended[state] ?? 0);
      for (const state of ['done', 'failed', 'skipped'])
        subtasks.set({ state }, counted.endedSubtasks[state] ?? 0);
    },
  };
}
