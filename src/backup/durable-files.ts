/** Copies files so that they survive a power failure once the call has returned. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, mkdir, open, readdir, readlink, symlink } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';

/** A copied file: its path relative to the base folder, and what was written. */
export type CopiedFile = { readonly path: string; readonly bytes: number; readonly sha256: string };

export type CopyOptions = {
  readonly from: string;
  readonly to: string;
  /** The folder that the paths of the result are relative to. */
  readonly base: string;
};

/**
 * Copies a file, link or folder with everything in it, accessible only to its owner. Links are copied as links. Sockets
 * and the like are skipped, and so is anything that vanishes in the meantime.
 */
export async function copyTree({ from, to, base }: CopyOptions): Promise<readonly CopiedFile[]> {
  const found = await unlessGone(lstat(from));
  if (found?.isSymbolicLink()) {
    const target = await unlessGone(readlink(from));
    if (target !== undefined) await symlink(target, to);
    return [];
  }
  if (found?.isDirectory()) return copyFolder({ from, to, base });
  if (!found?.isFile()) return [];
  return copyFile({ from, to, base }, (found.mode & 0o700) | 0o600);
}

async function copyFolder({ from, to, base }: CopyOptions): Promise<readonly CopiedFile[]> {
  const names = await unlessGone(readdir(from));
  if (names === undefined) return [];
  await mkdir(to, { mode: 0o700 });
  const copied: CopiedFile[] = [];
  // Copied one after the other: a workspace may contain more files than a process may open.
  // Pushed one by one: 125,000 arguments would be too many for a single call.
  for (const name of names)
    for (const file of await copyTree({ from: join(from, name), to: join(to, name), base }))
      copied.push(file);
  await syncFolder(to);
  return copied;
}

async function copyFile({ from, to, base }: CopyOptions, mode: number): Promise<readonly CopiedFile[]> {
  const source = await unlessGone(open(from));
  if (source === undefined) return [];
  await pipeline(source.createReadStream(), createWriteStream(to, { mode, flags: 'wx', flush: true }));
  return [await describeFile(to, base)];
}

/**
 * Undefined if the file or a folder above it has vanished, or such a folder became a file. Rejects with other errors.
 */
function unlessGone<T>(found: Promise<T>): Promise<T | undefined> {
  return found.catch((error: unknown) => {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  });
}

/** Describes a file by reading it back, since only what the disk returns counts. */
export async function describeFile(path: string, base: string): Promise<CopiedFile> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { path: relative(base, path), bytes, sha256: hash.digest('hex') };
}

/** The files of a folder and its folders, and its links with what each leads to; paths are relative to it. */
export type FolderContent = {
  readonly files: ReadonlySet<string>;
  readonly links: ReadonlyMap<string, string>;
};

/** Lists everything in a folder, without following links. */
export async function readContent(root: string): Promise<FolderContent> {
  const files = new Set<string>();
  const links = new Map<string, string>();
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const name of await readdir(folder)) {
      const path = join(folder, name);
      const found = await lstat(path);
      if (found.isDirectory()) folders.push(path);
      else if (found.isSymbolicLink()) links.set(relative(root, path), await readlink(path));
      else files.add(relative(root, path));
    }
  }
  return { files, links };
}

/** Makes renames and new files in the folder survive a power failure. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Makes a file's content survive a power failure. */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Entries of the data folder that belong to running processes, the database, the log, or to backups themselves. */
const own =
  /^(?:parley\.(?:db(?:-(?:wal|shm|journal))?|lock|pid)|processes|redis|logs|backups|\.restore|replaced-.*|\.room-.*|\.parley-doctor-.*)$/;

/** Says whether an entry of the data folder is never part of a backup. */
export function isOwnEntry(name: string): boolean {
  return own.test(name);
}

/**
 * Lists the entries that a backup copies in addition to the database: token, media, workspaces, the channels' files.
 */
export async function entriesToKeep(dataDir: string): Promise<readonly string[]> {
  return (await readdir(dataDir)).filter((name) => !isOwnEntry(name)).sort();
}

/** Files of the SQLite database in the data folder. */
export const databaseFiles = ['parley.db', 'parley.db-wal', 'parley.db-shm', 'parley.db-journal'] as const;
