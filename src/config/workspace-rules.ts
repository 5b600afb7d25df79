import { realpath } from 'node:fs/promises';
import { isAbsolute, join, relative, sep } from 'node:path';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import type { Config } from './config.ts';
import type { Problem } from './problem.ts';

/** Folders in the data folder with credentials, database files or what other people have sent. */
const ownFolders = /^(?:backups|channels|media|processes|redis|replaced-.*|skills)$/;

type Places = Pick<Config, 'agents' | 'dataDir' | 'configPath' | 'envFiles'>;

/**
 * Finds workspaces that contain the data folder or settings files, or are among Parley's own files: the file tools
 * expose everything in a workspace, which would include every conversation and credential. Goes by names only and
 * accesses no disk; `findLinkedWorkspaceProblems` follows links.
 */
export function findWorkspaceProblems(
  places: Places,
  realOf: (path: string) => string = (path) => path,
): readonly Problem[] {
  const { agents, dataDir } = places;
  const own = ownPaths(places);
  return agents.flatMap(({ workspace }, index) => {
    const where = `agents[${index}].workspace`;
    const folder = realOf(workspace);
    const held = own.find((path) => wayTo(realOf(path), folder) !== undefined);
    if (held !== undefined)
      return [
        { where, what: `contains ${held}, which the file tools would expose; choose a folder without it` },
      ];
    const [top = ''] = wayTo(folder, realOf(dataDir))?.split(sep) ?? [];
    if (!ownFolders.test(top)) return [];
    const what = `is in ${join(dataDir, top)}, which is Parley's own; choose a folder only for the agent's files`;
    return [{ where, what }];
  });
}

/**
 * Does the same as `findWorkspaceProblems`, but resolves links. A workspace may be on an unresponsive disk, so calls go
 * through `disks`, and if they fail, its path counts as written.
 */
export async function findLinkedWorkspaceProblems(
  places: Places,
  disks: DiskCalls,
): Promise<readonly Problem[]> {
  const paths = [...ownPaths(places), ...places.agents.map(({ workspace }) => workspace)];
  const found = paths.map(async (path) => [path, await resolveLinks(path, disks)] as const);
  const real = new Map(await Promise.all(found));
  return findWorkspaceProblems(places, (path) => real.get(path) ?? path);
}

function ownPaths({ dataDir, configPath, envFiles }: Omit<Places, 'agents'>): readonly string[] {
  return [dataDir, ...(configPath === undefined ? [] : [configPath]), ...envFiles.map(({ path }) => path)];
}

/** Returns the workspaces outside all `folders`. */
export function workspacesOutside(
  { agents }: Pick<Config, 'agents'>,
  folders: readonly string[],
): readonly string[] {
  const paths = new Set(agents.map(({ workspace }) => workspace));
  return [...paths].filter((path) => folders.every((folder) => wayTo(path, folder) === undefined));
}

/** Returns the path relative to `folder`, empty for the folder itself; undefined for a path outside. */
function wayTo(path: string, folder: string): string | undefined {
  const way = relative(folder, path);
  return isAbsolute(way) || way.split(sep)[0] === '..' ? undefined : way;
}

/** Resolves links; returns the path itself if it doesn't exist or its disk doesn't answer. */
async function resolveLinks(path: string, disks: DiskCalls): Promise<string> {
  try {
    return await disks.run(path, () => realpath(path));
  } catch {
    return path;
  }
}
