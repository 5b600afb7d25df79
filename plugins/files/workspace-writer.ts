import { ParleyError } from '#contracts/errors.ts';
import type { DiskCalls, WorkspaceWriter } from '#contracts/workspace-reader.ts';
import { codeOf } from './file-problem.ts';
import { openWorkspace } from './workspace-files.ts';

/** Lets Parley show its own files in a workspace, with the care of the file tools: see the contract. */
export function createWorkspaceWriter(disks: DiskCalls): WorkspaceWriter {
  return {
    write: (workspace, path, { bytes, signal }) =>
      orRefused('written', async () => {
        await using files = await openWorkspace(workspace, disks);
        await files.write(path, bytes, { signal });
      }),
    remove: (workspace, path, { signal }) =>
      orRefused('removed', async () => {
        await using files = await openWorkspace(workspace, disks);
        await files.remove(path, { signal });
      }),
    list: async (workspace, path, { most, signal }) => {
      await using files = await openWorkspace(workspace, disks);
      try {
        const { entries } = await files.list(path, { maxEntries: most, signal });
        return entries.map(({ name }) => name);
      } catch (error) {
        if (isPlace(error) || codeOf(error) === 'ENOENT') return [];
        throw error;
      }
    },
  };
}

async function orRefused<Done extends string>(
  done: Done,
  act: () => Promise<void>,
): Promise<Done | 'refused'> {
  try {
    await act();
    return done;
  } catch (error) {
    if (isPlace(error)) return 'refused';
    throw error;
  }
}

/** System errors that say what is in a place, not that the disk fails. */
const placeCodes: ReadonlySet<string> = new Set(['ELOOP', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG', 'ENOTEMPTY']);

/** Says whether the place itself is the problem, which has no other cause: a link, a folder, a file with other names. */
function isPlace(error: unknown): boolean {
  if (!(error instanceof ParleyError) || error.code !== 'tool_failed') return false;
  return error.cause === undefined ? error.retry.kind === 'never' : placeCodes.has(codeOf(error));
}
