import { realpathSync } from 'node:fs';
import { isAbsolute, relative, sep } from 'node:path';
import type { Config } from './config.ts';
import type { Problem } from './problem.ts';

/**
 * Finds workspaces that hold the data folder or files of settings: the file tools show all of a workspace, and with those
 * they would show every conversation and credential.
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
    const folder = realOf(workspace);
    const held = own.find((path) => isWithin(realOf(path), folder));
    if (held === undefined) return [];
    const what = `holds ${held}, which the file tools would show; choose a folder without it`;
    return [{ where: `agents[${index}].workspace`, what }];
  });
}

function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return !isAbsolute(way) && way.split(sep)[0] !== '..';
}

/** Without links; the path itself while nothing has that name. */
function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
