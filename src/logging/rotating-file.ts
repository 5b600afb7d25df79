import { type FileHandle, open, rename } from 'node:fs/promises';

/** A file to which lines are appended. When it is full, it is renamed and replaces the previous renamed file. */
export interface RotatingFile {
  append(line: string): Promise<void>;
  close(): Promise<void>;
}

/** Only the owner may read the file. */
const mode = 0o600;

/**
 * Creates a file that takes at most `maxBytes` together with the renamed one, `<path>.1`. Several processes may append
 * to it; if two find it full at the same moment, the renamed half is lost.
 */
export function createRotatingFile(path: string, maxBytes: number): RotatingFile {
  let file: FileHandle | undefined;
  const reopen = async () => {
    await file?.close();
    file = undefined;
    file = await open(path, 'a', mode);
    // An existing file may be readable by others.
    await file.chmod(mode);
    return file;
  };
  const isFull = async (handle: FileHandle, bytes: number) => {
    const { size } = await handle.stat();
    return size > 0 && size + bytes > maxBytes / 2;
  };
  return {
    append: async (line) => {
      const bytes = Buffer.byteLength(line);
      // Another process may have replaced it in the meantime.
      if (await isFull(file ?? (await reopen()), bytes)) {
        if (await isFull(await reopen(), bytes)) {
          await rename(path, `${path}.1`);
          await reopen();
        }
      }
      await file?.appendFile(line);
    },
    close: async () => {
      await file?.close();
      file = undefined;
    },
  };
}
