import { childPath, type Entry, openEntry, pathAt } from './descriptor.ts';
import { refuseRepository } from './executed-places.ts';
import { fileProblem, fromSystemError } from './file-problem.ts';

/** An open workspace. `realRoot` is its path according to the kernel; `roots` are its absolute names. */
export type OpenWorkspace = {
  readonly folder: Entry;
  readonly realRoot: string;
  readonly roots: readonly string[];
};

/** Follows the names one by one, keeping each folder open only until the next one is. */
export function openPath(
  place: OpenWorkspace,
  segments: readonly string[],
  signal: AbortSignal,
): Promise<Entry> {
  return follow(place, segments, signal, (parent, name) => {
    if (!parent.stats.isDirectory()) throw fileProblem(`${parent.path} isn't a folder.`);
    return openEntry(parent, name, place.realRoot);
  });
}

/** Works like `openPath`, but for writing: creates missing folders, and refuses paths into a git repository's data. */
export async function openFolders(
  place: OpenWorkspace,
  segments: readonly string[],
  signal: AbortSignal,
): Promise<Entry> {
  const folder = await follow(place, segments, signal, async (parent, name) => {
    await refuseRepository(parent);
    return openOrMakeFolder(place, parent, name);
  });
  try {
    await refuseRepository(folder);
    return folder;
  } catch (error) {
    await folder.handle.close();
    throw error;
  }
}

async function follow(
  place: OpenWorkspace,
  segments: readonly string[],
  signal: AbortSignal,
  step: (parent: Entry, name: string) => Promise<Entry>,
): Promise<Entry> {
  let current = await openEntry(place.folder, '.', place.realRoot);
  for (const name of segments) {
    const parent = current;
    try {
      signal.throwIfAborted();
      current = await step(parent, name);
    } finally {
      await parent.handle.close();
    }
  }
  return current;
}

async function openOrMakeFolder(place: OpenWorkspace, parent: Entry, name: string): Promise<Entry> {
  const path = childPath(parent.path, name);
  try {
    await parent.handle.disk.mkdir(pathAt(parent.handle, name));
  } catch (error) {
    const isThere = error instanceof Error && 'code' in error && error.code === 'EEXIST';
    if (!isThere) throw fromSystemError(error, path);
  }
  const folder = await openEntry(parent, name, place.realRoot);
  if (folder.stats.isDirectory()) return folder;
  await folder.handle.close();
  throw fileProblem(`${path} isn't a folder.`);
}
