/**
 * Reading and writing inside one workspace. All file tools go through here. Nothing outside can be
 * reached, whether by `..`, absolute paths or links, or by someone swapping folders and links meanwhile.
 */

import { hasCode } from '#contracts/errors.ts';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import { type Entry, openForReading, openRoot, pathOf } from './descriptor.ts';
import { Disk } from './disk.ts';
import { fileProblem } from './file-problem.ts';
import {
  type FolderListing,
  type ListOptions,
  list,
  type WalkedFile,
  type WalkOptions,
  walk,
} from './folder-walk.ts';
import { type OpenWorkspace, openPath, segmentsOf } from './open-path.ts';
import { removeFile } from './remove-file.ts';
import { type FileStamp, replaceFile, type WriteOptions } from './replace-file.ts';

/** An open workspace, until it is disposed of. Every failure is a ParleyError `tool_failed` that the model may read. */
export interface WorkspaceFiles extends AsyncDisposable {
  /** Returns the names from the workspace's root to the path. */
  segmentsOf(path: string): readonly string[];
  /** Reads a regular file of at most `maxBytes`. */
  read(path: string, options: ReadOptions): Promise<FileContent>;
  /**
   * Puts the file in place in one step, creating folders as needed: a reader sees the old content or the new,
   * even after a crash. With `replaces`, fails if the file isn't the version that was read. An abort before
   * that step changes nothing.
   */
  write(path: string, bytes: Uint8Array, options: WriteOptions): Promise<{ readonly isNew: boolean }>;
  /** Removes a file or a link, and its folder if that has become empty and isn't at the top. Nothing if it is missing. */
  remove(path: string, options: { readonly signal: AbortSignal }): Promise<void>;
  /** Lists a folder's entries by name. Links are listed but never followed. */
  list(path: string, options: ListOptions): Promise<FolderListing>;
  /** Yields the regular files under a path, depth first by name, or the one file that `path` names. */
  walk(path: string, options: WalkOptions): AsyncGenerator<WalkedFile>;
}

export type ReadOptions = {
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** The next step for a model that names a larger file. */
  readonly advice?: string;
};

export type FileContent = { readonly bytes: Buffer; readonly stamp: FileStamp };

/** Opens the workspace, creating it if it is missing. `root` is absolute. */
export async function openWorkspace(root: string, disks: DiskCalls): Promise<WorkspaceFiles> {
  const disk = new Disk(root, disks);
  const folder = await makeAndOpen(disk, root);
  const realRoot = await disk.readlink(pathOf(folder.handle));
  const place: OpenWorkspace = { folder, realRoot, roots: [root.replace(/\/+$/, ''), realRoot] };
  return {
    segmentsOf: (path) => segmentsOf(path, place.roots),
    read: (path, options) => read(place, path, options),
    write: (path, bytes, options) => replaceFile(place, path, { ...options, bytes }),
    remove: (path, options) => removeFile(place, path, options),
    list: (path, options) => list(place, path, options),
    walk: (path, options) => walk(place, path, options),
    [Symbol.asyncDispose]: () => folder.handle.close(),
  };
}

async function makeAndOpen(disk: Disk, root: string): Promise<Entry> {
  try {
    await disk.mkdir(root, { recursive: true });
    return await openRoot(disk, root);
  } catch (error) {
    if (hasCode(error, 'tool_failed')) throw error;
    throw fileProblem("The workspace folder can't be opened; the owner should check it.", error);
  }
}

async function read(
  place: OpenWorkspace,
  path: string,
  { maxBytes, signal, advice = 'Use grep to find what you need.' }: ReadOptions,
): Promise<FileContent> {
  await using entry = await openPath(place, segmentsOf(path, place.roots), signal);
  await using file = await openForReading(entry);
  const { size } = entry.stats;
  if (size > maxBytes) throw fileProblem(`${path} has ${size} bytes; the limit is ${maxBytes}. ${advice}`);
  // One byte more than allowed, so that a file that grows while being read is noticed.
  const bytes = Buffer.allocUnsafe(Math.min(size, maxBytes) + 1);
  let length = 0;
  while (length < bytes.length) {
    signal.throwIfAborted();
    const bytesRead = await file.read(bytes, length, Math.min(262_144, bytes.length - length), length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  if (length > size) throw fileProblem(`${path} is being written right now; read it again.`);
  return { bytes: bytes.subarray(0, length), stamp: entry.stats };
}
