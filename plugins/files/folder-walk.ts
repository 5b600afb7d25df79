import type { Dirent } from 'node:fs';
import { childPath, type Entry, openEntry, openForReading, pathOf } from './descriptor.ts';
import type { DiskFile } from './disk.ts';
import { fileProblem, fromSystemError } from './file-problem.ts';
import { type OpenWorkspace, openPath, segmentsOf } from './open-path.ts';

export type ListOptions = { readonly maxEntries: number; readonly signal: AbortSignal };

export type FolderListing = {
  readonly entries: readonly { readonly name: string; readonly kind: EntryKind }[];
  /** True when the folder contains more than `maxEntries`. */
  readonly isCut: boolean;
};

export type EntryKind = 'file' | 'folder' | 'link' | 'other';

export type WalkOptions = {
  /** Most entries examined; the walk ends there and `onCut` is called. */
  readonly maxEntries: number;
  readonly skipsFolder: (name: string) => boolean;
  readonly onCut: () => void;
  /** Called for a subfolder that couldn't be listed; the walk continues without it. */
  readonly onUnread: () => void;
  readonly signal: AbortSignal;
};

export type WalkedFile = {
  /** Relative to the workspace. */
  readonly path: string;
  /** Relative to the start of the walk; the file's name if the walk started at the file. */
  readonly pathBelow: string;
  /** Opens the file for reading; usable until the walk continues. The caller closes the handle. */
  open(): Promise<DiskFile>;
};

const maxWalkDepth = 40;

export async function list(place: OpenWorkspace, path: string, options: ListOptions): Promise<FolderListing> {
  await using folder = await openPath(place, segmentsOf(path, place.roots), options.signal);
  if (!folder.stats.isDirectory()) throw fileProblem(`${path} isn't a folder.`);
  // Awaited here, because the folder must stay open until it is listed.
  return await listFolder(folder, options);
}

async function listFolder(folder: Entry, { maxEntries, signal }: ListOptions): Promise<FolderListing> {
  const entries: { readonly name: string; readonly kind: EntryKind }[] = [];
  let isCut = false;
  try {
    await using reader = await folder.handle.disk.openFolder(pathOf(folder.handle));
    while (!isCut) {
      const some = await reader.next();
      signal.throwIfAborted();
      if (some.length === 0) break;
      isCut = entries.length + some.length > maxEntries;
      for (const entry of some.slice(0, maxEntries - entries.length))
        entries.push({ name: entry.name, kind: kindOf(entry) });
    }
  } catch (error) {
    throw fromSystemError(error, folder.path);
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { entries, isCut };
}

function kindOf(entry: Dirent): EntryKind {
  if (entry.isFile()) return 'file';
  if (entry.isDirectory()) return 'folder';
  return entry.isSymbolicLink() ? 'link' : 'other';
}

export async function* walk(
  place: OpenWorkspace,
  path: string,
  options: WalkOptions,
): AsyncGenerator<WalkedFile> {
  await using start = await openPath(place, segmentsOf(path, place.roots), options.signal);
  if (!start.stats.isDirectory()) {
    const pathBelow = start.path.slice(start.path.lastIndexOf('/') + 1);
    yield { path: start.path, pathBelow, open: () => openForReading(start) };
    return;
  }
  const budget: WalkBudget = { left: options.maxEntries, isSpent: false };
  yield* walkFolder(place, start, { ...options, budget, depth: 0, below: '.' });
  if (budget.isSpent) options.onCut();
}

type WalkBudget = { left: number; isSpent: boolean };

async function* walkFolder(
  place: OpenWorkspace,
  folder: Entry,
  options: WalkOptions & { readonly budget: WalkBudget; readonly depth: number; readonly below: string },
): AsyncGenerator<WalkedFile> {
  const { budget, depth, below, signal, skipsFolder, onUnread } = options;
  const listing = await listFolder(folder, { maxEntries: budget.left, signal }).catch((error: unknown) => {
    if (depth === 0 || signal.aborted) throw error;
    onUnread();
    return { entries: [], isCut: false };
  });
  const { entries, isCut } = listing;
  budget.left -= entries.length;
  if (isCut) budget.isSpent = true;
  for (const { name, kind } of entries) {
    signal.throwIfAborted();
    const pathBelow = childPath(below, name);
    if (kind === 'file') {
      yield { path: childPath(folder.path, name), pathBelow, open: () => openChild(place, folder, name) };
    } else if (kind === 'folder' && !skipsFolder(name)) {
      // Removed or replaced since it was listed, or with a name that isn't valid text: a walk shows what it can.
      const child =
        depth < maxWalkDepth
          ? await openEntry(folder, name, place.realRoot).catch(() => undefined)
          : undefined;
      if (child === undefined) {
        onUnread();
        continue;
      }
      try {
        if (child.stats.isDirectory()) {
          yield* walkFolder(place, child, { ...options, depth: depth + 1, below: pathBelow });
        }
      } finally {
        await child.handle.close();
      }
    }
  }
}

async function openChild(place: OpenWorkspace, folder: Entry, name: string): Promise<DiskFile> {
  await using entry = await openEntry(folder, name, place.realRoot);
  return await openForReading(entry);
}
