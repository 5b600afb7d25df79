import { chmod, mkdtemp, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { socketPointerSuffix } from '#channel-kit/client-frames.ts';

/** Where the socket lies, and how it is taken away. */
export type SocketFile = {
  readonly path: string;
  /** Closes the file to all but its owner; call it once the server listens. */
  readonly protect: () => Promise<void>;
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
  // The folder is closed first: between listening and `protect` the file itself is open to its group.
  await chmod(dataDir, 0o700);
  await removePointedAt(pointer);
  await Promise.all([rm(wanted, { force: true }), rm(pointer, { force: true })]);
  if (Buffer.byteLength(wanted) <= maxPathBytes) return socketFile(wanted, [wanted]);
  const path = join(await mkdtemp(join(tmpdir(), 'parley-')), socketName);
  await writeFile(pointer, path, { mode: 0o600 });
  return socketFile(path, [pointer, dirname(path)]);
}

/** A socket in a folder of its own, and nothing else, whatever the pointer says. */
async function removePointedAt(pointer: string): Promise<void> {
  const path = (await readFile(pointer, 'utf8').catch(() => '')).trim();
  if (basename(path) !== socketName) return;
  await rm(path, { force: true });
  await rmdir(dirname(path)).catch(() => undefined); // Gone already, or not ours.
}

function socketFile(path: string, leftovers: readonly string[]): SocketFile {
  return {
    path,
    protect: () => chmod(path, 0o600),
    remove: async () => {
      for (const leftover of leftovers) await rm(leftover, { force: true, recursive: true });
    },
  };
}
