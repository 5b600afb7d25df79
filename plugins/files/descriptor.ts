/**
 * File access relative to an open folder. Node has no openat(2), so each name is opened as
 * `/proc/self/fd/<folder>/<name>`: the kernel resolves the descriptor, not a path, so nobody can swap a
 * folder for a link between a check and its use. Every step uses O_NOFOLLOW.
 */
import { existsSync, constants as flags, type Stats } from 'node:fs';
import type { Disk, DiskFile } from './disk.ts';
import { fileProblem, fromSystemError, linkSentence } from './file-problem.ts';

/** From linux/fcntl.h; Node has no name for it. Opens the entry itself without reading from a device or FIFO. */
const O_PATH = 0o10000000;

/** Says why this system has no file tools; undefined if it has. */
export function findSystemProblem(os: NodeJS.Platform): string | undefined {
  if (os === 'linux' && existsSync('/proc/self/fd')) return undefined;
  return `The file tools need Linux with /proc to stay inside the workspace; they are off on this system (${os}).`;
}

/** A folder or file of the workspace, held open. `path` is for messages: relative, as the model writes it. */
export type Entry = AsyncDisposable & {
  readonly handle: DiskFile;
  readonly stats: Stats;
  readonly path: string;
};

/** Returns the path of an open folder's entry for a system call. `name` contains no slash and isn't `..`. */
export function pathAt(folder: DiskFile, name: string): string {
  return `${pathOf(folder)}/${name}`;
}

/** Returns the path of the open file itself, even if its name has changed. */
export function pathOf(handle: DiskFile): string {
  return `/proc/self/fd/${handle.fd}`;
}

/** Opens the workspace. `root` is configured by the operator and may contain links; it is resolved once. */
export async function openRoot(disk: Disk, root: string): Promise<Entry> {
  const handle = await disk.open(root, O_PATH | flags.O_DIRECTORY);
  return entryOf(handle, '.');
}

/** Opens any kind of file by name, but never follows a link. */
export async function openEntry(folder: Entry, name: string, root: string): Promise<Entry> {
  const path = childPath(folder.path, name);
  let handle: DiskFile;
  try {
    handle = await folder.handle.disk.open(pathAt(folder.handle, name), O_PATH | flags.O_NOFOLLOW);
  } catch (error) {
    throw fromSystemError(error, path);
  }
  const entry = await entryOf(handle, path);
  try {
    if (entry.stats.isSymbolicLink()) throw fileProblem(linkSentence(path));
    await checkInside(entry, root);
    return entry;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Returns an entry's facts; undefined if nothing has that name. */
export async function findEntry(folder: Entry, name: string): Promise<Stats | undefined> {
  try {
    return await folder.handle.disk.lstat(pathAt(folder.handle, name));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw fromSystemError(error, childPath(folder.path, name));
  }
}

/**
 * Asks the kernel where an open entry is now, and returns the names from `root` to it. Throws if it isn't under
 * `root`, because the folder was moved away while it was open.
 */
export async function checkInside(entry: Entry, root: string): Promise<readonly string[]> {
  const actual = await entry.handle.disk.readlink(pathOf(entry.handle));
  const above = root === '/' ? '/' : `${root}/`;
  if (actual === root) return [];
  if (actual.startsWith(above)) return actual.slice(above.length).split('/');
  throw fileProblem(`${entry.path} is no longer inside the workspace.`);
}

/** Throws for a file with several hard links: another name may be outside the workspace, which then shares the file. */
export function checkOneLink(stats: Pick<Stats, 'nlink'>, path: string): void {
  // No link is left if the file has been replaced since it was opened.
  if (stats.nlink <= 1) return;
  throw fileProblem(`${path} has further hard links, perhaps outside the workspace.`);
}

/** Opens a regular file for reading, through the checked entry. */
export async function openForReading(entry: Entry): Promise<DiskFile> {
  if (entry.stats.isDirectory()) throw fileProblem(`${entry.path} is a folder.`);
  if (!entry.stats.isFile()) throw fileProblem(`${entry.path} isn't a regular file.`);
  checkOneLink(entry.stats, entry.path);
  try {
    return await entry.handle.disk.open(pathOf(entry.handle), flags.O_RDONLY | flags.O_NONBLOCK);
  } catch (error) {
    throw fromSystemError(error, entry.path);
  }
}

export function childPath(folder: string, name: string): string {
  return folder === '.' ? name : `${folder}/${name}`;
}

async function entryOf(handle: DiskFile, path: string): Promise<Entry> {
  try {
    const stats = await handle.stat();
    return { handle, stats, path, [Symbol.asyncDispose]: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}
