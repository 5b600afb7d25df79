import { constants, lstatSync, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fitChars } from '#channel-kit/clean-text.ts';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import { workspaceDisks } from '../processes/disk-gate.ts';

/** The workspace files that address the agent, in the order of the prompt. */
export const bootstrapNames = [
  'AGENTS.md',
  'SOUL.md',
  'TOOLS.md',
  'IDENTITY.md',
  'USER.md',
  'MEMORY.md',
] as const;

/** The name of a workspace file that shapes an agent. */
export type BootstrapName = (typeof bootstrapNames)[number];

/** A workspace file as the prompt shows it; `text` is trimmed and bounded. */
export type BootstrapFile = { readonly name: BootstrapName; readonly text: string };

/** The workspace files that belong in every system prompt. */
export interface BootstrapFiles {
  /**
   * Returns the files that exist and aren't empty. They are read again only when the time or size of one has changed.
   * If the disk doesn't respond, the previous files are returned, so a run never waits for it.
   */
  read(): Promise<readonly BootstrapFile[]>;
}

/** Longest text of one file, in characters, including the note that it was cut. */
const maxChars = 20_000;
/** A UTF-16 unit takes at most 3 bytes, so this has room for more than `maxChars`. */
const maxBytes = 64 * 1024;

/** Reads from one workspace, which need not exist. Neither hard nor symbolic links are read: they may lead outside. */
export function createBootstrapFiles(deps: {
  readonly workspace: string;
  readonly disks?: DiskCalls;
}): BootstrapFiles {
  const { workspace, disks = workspaceDisks } = deps;
  const places = bootstrapNames.map((name) => ({ name, path: join(workspace, name) }));
  const hasOwnDisk = watchDisk(workspace, disks);
  let known: { readonly version: string; readonly files: readonly BootstrapFile[] } | undefined;
  return {
    read: async () => {
      try {
        const versions = (await hasOwnDisk())
          ? places.map(({ path }) => versionNow(path))
          : await Promise.all(places.map(({ path }) => disks.run(workspace, () => versionOf(path))));
        const version = versions.join();
        if (known?.version === version) return known.files;
        const all = places.map(async ({ name, path }) => {
          const text = await disks.run(workspace, () => readText(path));
          return { name, text };
        });
        known = { version, files: (await Promise.all(all)).filter(({ text }) => text !== '') };
      } catch {
        // Neither call fails on its own, so the disk isn't responding.
      }
      return known?.files ?? [];
    },
  };
}

/** File systems on local disks, by their statfs(2) numbers on Linux. Calls on them always return. */
const ownDisks: ReadonlySet<number> = new Set([
  0xef53, // ext2 to ext4
  0x58465342, // XFS
  0x9123683e, // Btrfs
  0xf2f52010, // F2FS
  0x2fc12fc1, // ZFS
  0x01021994, // tmpfs
  0x794c7630, // overlay, as in containers
]);
/** Another disk may be mounted over the folder, so it is checked again after this time, ms. */
const trustMs = 10_000;

/** Says whether the folder is on a local disk: calls there need no thread, and handing over to one takes longer. */
function watchDisk(folder: string, disks: DiskCalls): () => Promise<boolean> {
  let seen: { readonly at: number; readonly isOwn: boolean } | undefined;
  return async () => {
    const at = performance.now();
    if (seen === undefined || at - seen.at > trustMs)
      seen = { at, isOwn: await disks.run(folder, () => isOnOwnDisk(folder)) };
    return seen.isOwn;
  };
}

/** A missing folder would be on the disk of its parent. */
async function isOnOwnDisk(folder: string): Promise<boolean> {
  try {
    return process.platform === 'linux' && ownDisks.has((await statfs(folder)).type);
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    return isMissing && dirname(folder) !== folder && isOnOwnDisk(dirname(folder));
  }
}

/** Checks a file on a local disk. On an unreachable network drive this would block the entire process. */
function versionNow(path: string): string | undefined {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found && versionIn(found);
  } catch {
    return undefined;
  }
}

async function versionOf(path: string): Promise<string | undefined> {
  try {
    return versionIn(await lstat(path));
  } catch {
    // Missing or not readable: the prompt does without it.
    return undefined;
  }
}

function versionIn({ ino, size, mtimeMs, ctimeMs }: Stats): string {
  return `${ino}:${size}:${mtimeMs}:${ctimeMs}`;
}

async function readText(path: string): Promise<string> {
  let file: FileHandle | undefined;
  try {
    // Non-blocking, so that a named pipe in its place can't hold up the run.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = await file.stat();
    if (!stats.isFile() || stats.nlink > 1) return '';
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
    return fitChars(buffer.toString('utf8', 0, bytesRead).trim(), maxChars);
  } catch {
    // A link, a folder, or deleted in the meantime: treated as missing.
    return '';
  } finally {
    await file?.close();
  }
}
