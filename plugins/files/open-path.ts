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

const maxSegments = 64;
const maxNameBytes = 255;
const maxPathLength = 4096;

/**
 * Returns the names from the workspace's root to `path`; empty for the root itself. `..` is resolved
 * textually, which is exact because links are never followed. An absolute path must begin with one
 * of `roots`. Throws ParleyError `tool_failed` for a path that is invalid or leads outside.
 */
export function segmentsOf(path: string, roots: readonly string[]): readonly string[] {
  if (path.length > maxPathLength) throw fileProblem('The path is too long.');
  if (path.includes('\0')) throw fileProblem('The path contains a NUL character.');
  if (!path.isWellFormed()) throw fileProblem("The path isn't valid Unicode.");
  const segments: string[] = [];
  for (const name of relativeTo(path, roots).split('/')) {
    if (name === '' || name === '.') continue;
    if (name !== '..') segments.push(name);
    else if (segments.pop() === undefined) throw outside(path);
  }
  if (segments.length > maxSegments) throw fileProblem(`${path} is nested too deeply.`);
  if (segments.some((name) => Buffer.byteLength(name) > maxNameBytes)) {
    throw fileProblem(`${path} has a name that is too long.`);
  }
  return segments;
}

function relativeTo(path: string, roots: readonly string[]): string {
  if (!path.startsWith('/')) return path;
  for (const root of roots) {
    if (path === root) return '';
    if (path.startsWith(`${root}/`)) return path.slice(root.length + 1);
  }
  throw outside(path);
}

function outside(path: string): Error {
  return fileProblem(`${path} is outside the workspace; use a path relative to it.`);
}
