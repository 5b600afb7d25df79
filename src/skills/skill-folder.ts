/** Reads one skill's folder, with bounds, and takes its digest. Nothing is followed out of the folder. */
import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { lstat, open, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import type { SkillFile } from '#contracts/skill.ts';

/** Bounds of one skill. */
export const maxSkillFiles = 200;
export const maxSkillBytes = 4 * 1024 * 1024;
const maxSkillDepth = 5;

/** The files of a skill as they were when they were read, by their paths in the folder. */
export type SkillFolder = {
  readonly kind: 'read';
  /** `sha256-` and 64 hexadecimal digits. */
  readonly digest: string;
  readonly files: ReadonlyMap<string, SkillFile>;
};

export type SkillFolderResult = SkillFolder | { readonly kind: 'refused'; readonly problem: string };

/** Reads all files of a skill. Rejects if the disk fails, or if the folder changes meanwhile. */
export async function readSkillFolder(folder: string): Promise<SkillFolderResult> {
  const listing = await listSkillFolder(folder);
  if (listing.kind === 'refused') return listing;
  const files = new Map<string, SkillFile>();
  for (const [path, listed] of listing.files) {
    const file = await readListed(join(folder, path), listed);
    if (file === undefined) return { kind: 'refused', problem: `${path} is being changed; try again` };
    files.set(path, file);
  }
  return { kind: 'read', digest: digestOf(files), files };
}

export type SkillListing =
  | { readonly kind: 'listed'; readonly files: ReadonlyMap<string, Stats> }
  | { readonly kind: 'refused'; readonly problem: string };

/** Lists the files of a skill in the order of their paths; opens none of them. */
export async function listSkillFolder(folder: string): Promise<SkillListing> {
  const found = new Map<string, Stats>();
  let bytes = 0;
  const folders = [''];
  for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
    if (at.split('/').length > maxSkillDepth) return refuse(`${at} is nested too deeply`);
    if (!(await lstat(join(folder, at))).isDirectory()) return refuse(`${at || 'it'} isn't a folder`);
    let count = 0;
    for await (const { name } of await opendir(join(folder, at))) {
      const path = at === '' ? name : `${at}/${name}`;
      const stats = await lstat(join(folder, path));
      if (++count > maxSkillFiles || found.size + folders.length > maxSkillFiles)
        return refuse(`it has more than ${maxSkillFiles} files and folders; leave out what it doesn't need`);
      const problem = findFault(path, stats);
      if (problem !== undefined) return refuse(problem);
      if (stats.isDirectory()) folders.push(path);
      else {
        bytes += stats.size;
        found.set(path, stats);
      }
      if (bytes > maxSkillBytes) return refuse(`it has more than ${maxSkillBytes / 1024 / 1024} MB`);
    }
  }
  // By code units, so that the order is the same everywhere.
  const files = new Map([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  return files.has('SKILL.md') ? { kind: 'listed', files } : refuse('it has no file SKILL.md');
}

function findFault(path: string, stats: Stats): string | undefined {
  // In a file's name, such characters would forge lines of what `parley skills check` shows.
  if (/[\p{Cc}\p{Cf}\u2028\u2029\ufffd]/u.test(path))
    return 'it has a file whose name has invisible characters';
  if (stats.isSymbolicLink())
    return `${path} is a symbolic link, which may lead to other files later; replace it by a copy`;
  if (stats.isDirectory()) return undefined;
  if (!stats.isFile()) return `${path} is neither a file nor a folder; remove it`;
  return stats.nlink > 1
    ? `${path} has further hard links, so it may be changed from elsewhere; replace it by a copy`
    : undefined;
}

/** Reads what was listed; undefined if it has become something else since. */
async function readListed(path: string, listed: Stats): Promise<SkillFile | undefined> {
  // Non-blocking, so that a named pipe in its place can't hold anything up.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await file.stat();
    if (stats.ino !== listed.ino || stats.size !== listed.size || !stats.isFile()) return undefined;
    // One byte more, so that a file that grows is noticed.
    const buffer = Buffer.alloc(stats.size + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
      length += bytesRead;
      if (bytesRead === 0 || length > stats.size) break;
    }
    if (length !== stats.size) return undefined;
    return { bytes: buffer.subarray(0, length), isExecutable: (stats.mode & 0o100) !== 0 };
  } finally {
    await file.close();
  }
}

function digestOf(files: ReadonlyMap<string, SkillFile>): string {
  const whole = createHash('sha256');
  for (const [path, file] of files) whole.update(`${path}\0${fileDigest(file)}\0`);
  return `sha256-${whole.digest('hex')}`;
}

/** Returns the digest of one file, with an `x` behind it if it is executable. */
export function fileDigest({ bytes, isExecutable }: SkillFile): string {
  return `${createHash('sha256').update(bytes).digest('hex')}${isExecutable ? 'x' : ''}`;
}

function refuse(problem: string): { readonly kind: 'refused'; readonly problem: string } {
  return { kind: 'refused', problem };
}
