import { chmod, mkdtemp, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { socketPointerSuffix } from '#channel-kit/client-frames.ts';

/**
 * A socket that clients find under a name that outlives processes. Each process listens under its own name, which
 * closing removes, and only removes the clients' name if that still leads to this process: the previous holder may stop
 * after the next one has started to serve.
 */
export type SocketFile = {
  /** Where to listen. */
  readonly path: string;
  /** Restricts the file to its owner and lets clients find it; call it once the server listens. */
  readonly publish: () => Promise<void>;
  readonly remove: () => Promise<void>;
};

/** Linux accepts 107 bytes and a NUL as the path of a Unix socket, macOS 103. */
const maxPathBytes = 103;
const socketName = 'terminal.sock';

/**
 * Prepares a place for the socket: in the channel's own folder or, if that path is too long, in a new temporary folder
 * that a pointer file names. Anything that an earlier process left is removed, since only the holder of the account's
 * lease calls this.
 */
export async function prepareSocketFile(dataDir: string): Promise<SocketFile> {
  const wanted = join(dataDir, socketName);
  const pointer = `${wanted}${socketPointerSuffix}`;
  // The folder is restricted first: until it is published, the file itself is open to its group.
  await chmod(dataDir, 0o700);
  await removePointedAt(pointer);
  await Promise.all([rm(wanted, { force: true }), rm(pointer, { force: true })]);
  return Buffer.byteLength(wanted) <= maxPathBytes ? inFolder(wanted) : elsewhere(pointer);
}

function inFolder(wanted: string): SocketFile {
  // No longer than the final name, so that the path fits.
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

/** Removes a socket in its own folder and nothing else, whatever the pointer says. */
async function removePointedAt(pointer: string): Promise<void> {
  const path = await readPointer(pointer);
  if (basename(path) !== socketName) return;
  await rm(path, { force: true });
  await rmdir(dirname(path)).catch(() => undefined); // Already gone, or not Parley's.
}

/** Returns the path in the pointer file; empty if there is none. */
async function readPointer(pointer: string): Promise<string> {
  return (await readFile(pointer, 'utf8').catch(() => '')).trim();
}
