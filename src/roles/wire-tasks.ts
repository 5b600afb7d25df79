import { createProjector } from '../mail/projector.ts';
import type { PluginHost } from '../plugin-host/plugin-host.ts';
import { createTaskSettler } from '../queue/task-settler.ts';
import type { StageDeps } from './stage-deps.ts';

/** Follow-up work on tasks after a commit. The sweep finds all of it, too. */
export type TaskUpkeep = {
  /** Does what a step has left of a task. Never waits, never throws. */
  settle(taskId: string): void;
  /** Writes the files that show a task, in a process that runs agents and so has their workspaces. */
  show(taskId: string): void;
};

/** Wires what follows a change of a task. */
export function wireTasks(
  { config, store, clock, log, probe, closers, dispatcher, works }: StageDeps,
  { workspaceWriter: writer }: PluginHost,
): TaskUpkeep {
  const { settle } = createTaskSettler({ store, log, start: dispatcher.dispatch });
  if (!works) return { settle, show: () => undefined };
  const workspaceOf = (id: string) => config.agents.find((agent) => agent.id === id)?.workspace;
  const { show, stop } = createProjector({ store, clock, log, probe, writer, workspaceOf });
  closers.add('task files', stop);
  return { settle, show };
}
