import { constants, lstatSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { fitChars } from '#channel-kit/clean-text.ts';

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
  /** The files that exist and say something. A file is read again only when its time or size has changed. */
  read(): Promise<readonly BootstrapFile[]>;
}

/** Longest text of one file, in characters, its note about the cut included. */
const maxChars = 20_000;
/** A character takes at most 3 bytes per UTF-16 unit, so this holds more than `maxChars`. */
const maxBytes = 64 * 1024;

type Known = { readonly version: string; readonly text: string };

/** Reads from one workspace, which need not exist. Links are not followed: they may lead outside. */
export function createBootstrapFiles({ workspace }: { readonly workspace: string }): BootstrapFiles {
  const known = new Map<string, Known>();

  const readOne = async (name: string): Promise<string> => {
    const path = join(workspace, name);
    const version = versionOf(path);
    if (version === undefined) {
      known.delete(name);
      return '';
    }
    const cached = known.get(name);
    if (cached?.version === version) return cached.text;
    const text = await readText(path);
    known.set(name, { version, text });
    return text;
  };

  return {
    read: async () => {
      const files = await Promise.all(
        bootstrapNames.map(async (name) => ({ name, text: await readOne(name) })),
      );
      return files.filter(({ text }) => text !== '');
    },
  };
}

/** Synchronous: it takes 3 microseconds, a turn of the thread pool fifty, and every run asks six times. */
function versionOf(path: string): string | undefined {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found && `${found.ino}:${found.size}:${found.mtimeMs}:${found.ctimeMs}`;
  } catch {
    // Not for us: the prompt goes without it.
    return undefined;
  }
}

async function readText(path: string): Promise<string> {
  let file: FileHandle | undefined;
  try {
    // Non-blocking, so that a named pipe in its place cannot hold up the run.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) return '';
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
    return fitChars(buffer.toString('utf8', 0, bytesRead).trim(), maxChars);
  } catch {
    // A link, a folder, or gone since: as if it were not there.
    return '';
  } finally {
    await file?.close();
  }
}
