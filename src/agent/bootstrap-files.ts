import { constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { join } from 'node:path';
import { fitChars } from '#channel-kit/clean-text.ts';
import type { DiskCalls } from '#contracts/disk-calls.ts';
import { workspaceDisks } from '../processes/disk-gate.ts';

/** The files of a workspace that speak to the agent, in the order of the prompt. */
export const bootstrapNames = [
  'AGENTS.md',
  'SOUL.md',
  'TOOLS.md',
  'IDENTITY.md',
  'USER.md',
  'MEMORY.md',
] as const;

/** The name of a file that shapes an agent. */
export type BootstrapName = (typeof bootstrapNames)[number];

export type BootstrapFile = { readonly name: BootstrapName; readonly text: string };

/** The files of a workspace that belong in every system prompt. */
export interface BootstrapFiles {
  /**
   * The files that exist and say something. They are read again only when the time or size of one has changed. Those
   * of the last time where the disk doesn't answer: a run doesn't wait for it.
   */
  read(): Promise<readonly BootstrapFile[]>;
}

/** Longest text of one file, in characters, its note about the cut included. */
const maxChars = 20_000;
/** A character takes at most 3 bytes per UTF-16 unit, so this holds more than `maxChars`. */
const maxBytes = 64 * 1024;

export type BootstrapDeps = { readonly workspace: string; readonly disks?: DiskCalls };

/** Reads from one workspace, which need not exist. Links of either kind are not read: they may lead outside. */
export function createBootstrapFiles({ workspace, disks = workspaceDisks }: BootstrapDeps): BootstrapFiles {
  const places = bootstrapNames.map((name) => ({ name, path: join(workspace, name) }));
  let known: { readonly version: string; readonly files: readonly BootstrapFile[] } | undefined;
  return {
    read: async () => {
      try {
        const versions = places.map(({ path }) => disks.run(workspace, () => versionOf(path)));
        const version = (await Promise.all(versions)).join();
        if (known?.version === version) return known.files;
        const all = places.map(async ({ name, path }) => {
          const text = await disks.run(workspace, () => readText(path));
          return { name, text };
        });
        known = { version, files: (await Promise.all(all)).filter(({ text }) => text !== '') };
      } catch {
        // Neither of the two fails by itself: the disk doesn't answer.
      }
      return known?.files ?? [];
    },
  };
}

/** Not synchronous, although that is faster: on a network drive that is gone the whole process would stand still. */
async function versionOf(path: string): Promise<string | undefined> {
  try {
    const { ino, size, mtimeMs, ctimeMs } = await lstat(path);
    return `${ino}:${size}:${mtimeMs}:${ctimeMs}`;
  } catch {
    // Not there, or not for us: the prompt goes without it.
    return undefined;
  }
}

async function readText(path: string): Promise<string> {
  let file: FileHandle | undefined;
  try {
    // Non-blocking, so that a named pipe in its place cannot hold up the run.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = await file.stat();
    if (!stats.isFile() || stats.nlink > 1) return '';
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
    return fitChars(buffer.toString('utf8', 0, bytesRead).trim(), maxChars);
  } catch {
    // A link, a folder, or gone since: as if it were not there.
    return '';
  } finally {
    await file?.close();
  }
}
