import { realpathSync } from 'node:fs';
import { isAbsolute, join, relative, sep } from 'node:path';
import type { Config } from './config.ts';
import type { Problem } from './problem.ts';

/** Folders in the data folder that hold credentials, the database's files or what other people have sent. */
const ownFolders = /^(?:backups|channels|media|processes|redis|replaced-.*)$/;

/**
 * Finds workspaces that hold the data folder or files of settings, or lie among Parley's own files: the file tools show
 * all of a workspace, and with those they would show every conversation and credential.
 */
export function findWorkspaceProblems({
  agents,
  dataDir,
  configPath,
  envFiles,
}: Pick<Config, 'agents' | 'dataDir' | 'configPath' | 'envFiles'>): readonly Problem[] {
  const own = [
    dataDir,
    ...(configPath === undefined ? [] : [configPath]),
    ...envFiles.map(({ path }) => path),
  ];
  return agents.flatMap(({ workspace }, index) => {
    const where = `agents[${index}].workspace`;
    const folder = realOf(workspace);
    const held = own.find((path) => wayTo(realOf(path), folder) !== undefined);
    if (held !== undefined)
      return [{ where, what: `holds ${held}, which the file tools would show; choose a folder without it` }];
    const [top = ''] = wayTo(folder, realOf(dataDir))?.split(sep) ?? [];
    if (!ownFolders.test(top)) return [];
    const what = `lies in ${join(dataDir, top)}, which is Parley's own; choose a folder for the agent's files alone`;
    return [{ where, what }];
  });
}

/** Workspaces that lie outside of all `folders`. */
export function workspacesOutside(
  { agents }: Pick<Config, 'agents'>,
  folders: readonly string[],
): readonly string[] {
  const paths = new Set(agents.map(({ workspace }) => workspace));
  return [...paths].filter((path) => folders.every((folder) => wayTo(path, folder) === undefined));
}

/** The path below `folder`, empty for the folder itself; undefined for one outside. */
function wayTo(path: string, folder: string): string | undefined {
  const way = relative(folder, path);
  return isAbsolute(way) || way.split(sep)[0] === '..' ? undefined : way;
}

/** Without links; the path itself while nothing has that name. */
function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
