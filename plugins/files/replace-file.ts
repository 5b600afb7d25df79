import { randomBytes } from 'node:crypto';
import { constants as flags, type Stats } from 'node:fs';
import { checkInside, checkOneLink, childPath, type Entry, findEntry, pathAt } from './descriptor.ts';
import { refuseExecutable, refuseExecuted } from './executed-places.ts';
import { fileProblem, fromSystemError, linkSentence } from './file-problem.ts';
import { type OpenWorkspace, openFolders, segmentsOf } from './open-path.ts';

/** Identifies the version of a file, to notice that it changed after it was read. */
export type FileStamp = Pick<Stats, 'dev' | 'ino' | 'size' | 'mtimeMs'>;

export type WriteOptions = { readonly signal: AbortSignal; readonly replaces?: FileStamp };

/** Writes a temporary file next to the target, then renames it, so that readers see the old content or the new. */
export async function replaceFile(
  place: OpenWorkspace,
  path: string,
  options: WriteOptions & { readonly bytes: Uint8Array },
): Promise<{ readonly isNew: boolean }> {
  const { signal, replaces, bytes } = options;
  const segments = segmentsOf(path, place.roots);
  const name = segments.at(-1);
  if (name === undefined) throw fileProblem(`${path} is the workspace itself, not a file.`);
  // Checked before any folder is created.
  refuseExecuted(segments, path);
  await using folder = await openFolders(place, segments.slice(0, -1), signal);
  const { disk } = folder.handle;
  const before = await findWritable(folder, name);
  const temporary = `.parley-${randomBytes(8).toString('hex')}.tmp`;
  try {
    await writeTemporary(folder, temporary, { bytes, before });
    await inTurn([place.realRoot, ...segments].join('/'), async () => {
      signal.throwIfAborted();
      if (replaces !== undefined && !isSameFile(await findWritable(folder, name), replaces)) {
        throw fileProblem(`${path} changed since it was read; read it again.`);
      }
      const actual = await checkInside(folder, place.realRoot);
      // A folder may have been renamed since it was opened.
      refuseExecuted([...actual, name], path);
      await disk.rename(pathAt(folder.handle, temporary), pathAt(folder.handle, name));
    });
  } catch (error) {
    // Best effort: the folder may be gone, and the file with it.
    await disk.unlink(pathAt(folder.handle, temporary)).catch(() => undefined);
    throw fromSystemError(error, path);
  }
  return { isNew: before === undefined };
}

/** The last pending replacement, by path. */
const replacing = new Map<string, Promise<void>>();

/**
 * Replaces a file's versions one at a time: sub-agents edit concurrently, and of two edits of the same version, the
 * second must notice that the file has changed.
 */
async function inTurn(path: string, replace: () => Promise<void>): Promise<void> {
  const mine = (replacing.get(path) ?? Promise.resolve()).then(replace);
  const ended = mine.catch(() => undefined);
  replacing.set(path, ended);
  await ended;
  if (replacing.get(path) === ended) replacing.delete(path);
  await mine;
}

/** Returns the file that a write would replace. Throws for one that must not be replaced. */
async function findWritable(folder: Entry, name: string): Promise<Stats | undefined> {
  const stats = await findEntry(folder, name);
  const path = childPath(folder.path, name);
  if (stats === undefined) return undefined;
  if (stats.isSymbolicLink()) throw fileProblem(linkSentence(path));
  if (stats.isDirectory()) throw fileProblem(`${path} is a folder.`);
  if (!stats.isFile()) throw fileProblem(`${path} isn't a regular file.`);
  checkOneLink(stats, path);
  refuseExecutable(stats.mode, path);
  return stats;
}

async function writeTemporary(
  folder: Entry,
  name: string,
  { bytes, before }: { readonly bytes: Uint8Array; readonly before: Stats | undefined },
): Promise<void> {
  const exclusively = flags.O_WRONLY | flags.O_CREAT | flags.O_EXCL | flags.O_NOFOLLOW;
  await using file = await folder.handle.disk.open(
    pathAt(folder.handle, name),
    exclusively,
    before === undefined ? 0o666 : 0o600,
  );
  if (before !== undefined) await file.chmod(before.mode & 0o777);
  await file.write(bytes);
}

function isSameFile(stats: Stats | undefined, stamp: FileStamp): boolean {
  return (
    stats !== undefined &&
    stats.dev === stamp.dev &&
    stats.ino === stamp.ino &&
    stats.size === stamp.size &&
    stats.mtimeMs === stamp.mtimeMs
  );
}
