import type { WorkspaceWriter } from '#contracts/workspace-reader.ts';
import type { Store } from '../store/base/command.ts';
import { readTaskAges, readTaskFiles, type TaskFiles } from '../store/reads/read-task-files.ts';
import { mailFolders, mailNameOf } from './mailbox.ts';

/** The bounds of one workspace: the files of older tasks are removed once these are exceeded. */
const keptTasks = 100;
const keptFiles = 2_000;
/** Names that are read of each folder. */
const maxNames = 20_000;
/** Tasks that one call removes; the next task's end continues. */
const removedAtOnce = 20;

type PruneDeps = {
  readonly store: Pick<Store, 'read'>;
  readonly writer: WorkspaceWriter;
  readonly signal: AbortSignal;
};

/**
 * Removes the files of the oldest tasks that have ended, if the workspace has those of too many. Only names that Parley
 * itself gives are removed; other files of an agent stay.
 */
export async function pruneTasks({ store, writer, signal }: PruneDeps, workspace: string): Promise<void> {
  const paths = new Map<string, string[]>();
  for (const folder of ['tasks', ...mailFolders])
    for (const name of await writer.list(workspace, folder, { most: maxNames, signal })) {
      const [, id] = /^([a-z2-7]{16})(?:$|[-.])/.exec(name) ?? [];
      if (id === undefined) continue;
      const path = folder === 'tasks' ? `tasks/${id}/task.md` : `${folder}/${name}`;
      const known = paths.get(id);
      if (known) known.push(path);
      else paths.set(id, [path]);
    }
  const count = [...paths.values()].reduce((sum, some) => sum + some.length, 0);
  if (paths.size <= keptTasks && count <= keptFiles) return;
  for (const id of await findOld(store, paths)) {
    const files = await store.read(readTaskFiles, { taskId: id });
    const own = files && namesOf(files);
    for (const path of paths.get(id) ?? [])
      if (own?.has(path.slice(path.indexOf('/') + 1))) await writer.remove(workspace, path, { signal });
  }
}

/** Returns the ended tasks beyond the bounds, oldest first. */
async function findOld(
  store: PruneDeps['store'],
  paths: ReadonlyMap<string, readonly string[]>,
): Promise<readonly string[]> {
  const ages = await store.read(readTaskAges, { ids: [...paths.keys()] });
  let files = 0;
  const old = ages.filter(({ id, isEnded }, index) => {
    files += paths.get(id)?.length ?? 0;
    return isEnded && (index >= keptTasks || files > keptFiles);
  });
  return old
    .map(({ id }) => id)
    .toReversed()
    .slice(0, removedAtOnce);
}

/** Returns the names below a folder that a task's files have. */
function namesOf({ task, messages }: TaskFiles): ReadonlySet<string> {
  const own = { taskId: task.id, subtaskId: '' } as const;
  const mail = [...messages, { ...own, type: 'task' as const }, { ...own, type: 'reply' as const }];
  return new Set([`${task.id}/task.md`, ...mail.map(mailNameOf)]);
}
