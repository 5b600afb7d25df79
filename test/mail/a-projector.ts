import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createWorkspaceWriter } from '../../plugins/files/workspace-writer.ts';
import type { Clock } from '../../src/contracts/clock.ts';
import type { WorkspaceWriter } from '../../src/contracts/workspace-reader.ts';
import { createProjector } from '../../src/mail/projector.ts';
import { workspaceDisks } from '../../src/processes/disk-gate.ts';
import type { Store } from '../../src/store/base/command.ts';
import { readSweep } from '../../src/store/lanes/sweep.ts';
import { aFolder } from '../support/own-folder.ts';

/** Waits pass at once. */
const hurriedClock = (): Clock => {
  let now = 1_000_000;
  return {
    now: () => now,
    wait: async (ms) => {
      now += ms;
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
};

export const realWriter = createWorkspaceWriter(workspaceDisks);

/** Shows tasks of the agent `main` in a folder of the test's own. */
export function aProjector(
  store: Store,
  {
    writer = realWriter,
    workspace = aFolder(),
  }: { readonly writer?: WorkspaceWriter | null; readonly workspace?: string } = {},
) {
  const warnings: { readonly event: string; readonly fields: unknown }[] = [];
  const points: string[] = [];
  const note = (fields: unknown, event: string) => void warnings.push({ event, fields });
  const log = { debug: () => undefined, info: () => undefined, warn: note, error: note };
  const projector = createProjector({
    ...{ store, clock: hurriedClock(), log: log as never },
    probe: { reach: (point) => void points.push(point) },
    writer: () => writer ?? undefined,
    workspaceOf: (agent) => (agent === 'main' ? workspace : undefined),
  });
  const unshown = async () => (await store.read(readSweep, {})).unshownTasks;
  return {
    ...{ workspace, warnings, points, projector, unshown },
    /** Does what the sweep does until nothing is left to show. */
    showAll: async () => {
      for (let tasks = await unshown(); tasks.length > 0; tasks = await unshown()) {
        for (const id of tasks) projector.show(id);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    read: (path: string) => readFile(join(workspace, path), 'utf8'),
    /** Lists the files of a task, with its id written as `T`. */
    filesOf: async (taskId: string) =>
      (await readdir(workspace, { recursive: true, withFileTypes: true }))
        .filter((entry) => !entry.isDirectory())
        .map((entry) => join(entry.parentPath, entry.name).slice(workspace.length + 1))
        .filter((path) => path.includes(taskId) && !path.endsWith('.tmp'))
        .map((path) => path.replaceAll(taskId, 'T'))
        .sort(),
  };
}
