import { chmod, mkdtemp, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { socketPointerSuffix } from '#channel-kit/client-frames.ts';

/**
 * A socket that clients find by a name that outlives processes. Each process listens under a name of its own, which
 * closing removes, and takes back the name for clients only where it is still its own: the process that received
 * before may stop when the next one serves already.
 */
export type SocketFile = {
  /** Where to listen. */
  readonly path: string;
  /** Closes the file to all but its owner and lets clients find it; call it once the server listens. */
  readonly publish: () => Promise<void>;
  readonly remove: () => Promise<void>;
};

/** Linux takes 107 bytes and a NUL as the path of a unix socket, macOS 103. */
const maxPathBytes = 103;
const socketName = 'terminal.sock';

/**
 * Makes room for the socket: in the channel's own folder, or, where that path is too long, in a
 * fresh folder among the temporary files, named by a pointer file. What an earlier process left is
 * removed: only the holder of the account's lease comes here.
 */
export async function prepareSocketFile(dataDir: string): Promise<SocketFile> {
  const wanted = join(dataDir, socketName);
  const pointer = `${wanted}${socketPointerSuffix}`;
  // The folder is closed first: until it is published the file itself is open to its group.
  await chmod(dataDir, 0o700);
  await removePointedAt(pointer);
  await Promise.all([rm(wanted, { force: true }), rm(pointer, { force: true })]);
  return Buffer.byteLength(wanted) <= maxPathBytes ? inFolder(wanted) : elsewhere(pointer);
}

function inFolder(wanted: string): SocketFile {
  // No longer than the name that it gets.
  const path = join(dirname(wanted), `${crypto.randomUUID().slice(0, 8)}.new`);
  let own: number | undefined;
  return {
    path,
    publish: async () => {
      await chmod(path, 0o600);
      own = (await stat(path)).ino;
      await rename(path, wanted);
    },
    remove: async () => {
      const found = await stat(wanted).catch(() => undefined);
      if (found !== undefined && found.ino === own) await rm(wanted, { force: true });
    },
  };
}

async function elsewhere(pointer: string): Promise<SocketFile> {
  const path = join(await mkdtemp(join(tmpdir(), 'parley-')), socketName);
  return {
    path,
    publish: async () => {
      await chmod(path, 0o600);
      await writeFile(pointer, path, { mode: 0o600 });
    },
    remove: async () => {
      if ((await readPointer(pointer)) === path) await rm(pointer, { force: true });
      await rm(dirname(path), { force: true, recursive: true });
    },
  };
}

/** Removes a socket in a folder of its own, and nothing else, whatever the pointer says. */
async function removePointedAt(pointer: string): Promise<void> {
  const path = await readPointer(pointer);
  if (basename(path) !== socketName) return;
  await rm(path, { force: true });
  await rmdir(dirname(path)).catch(() => undefined); // Gone already, or not ours.
}

/** Empty when there is none. */
async function readPointer(pointer: string): Promise<string> {
  return (await readFile(pointer, 'utf8').catch(() => '')).trim();
}
