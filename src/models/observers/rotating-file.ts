import { type FileHandle, open, rename } from 'node:fs/promises';

/** A file that lines are added to. When it is full it becomes the earlier one, which replaces the one before. */
export interface RotatingFile {
  append(line: string): Promise<void>;
  close(): Promise<void>;
}

/** Only its owner may read it. */
const mode = 0o600;

/**
 * Creates a file of at most `maxBytes` together with the earlier one, `<path>.1`. Several processes may add to it;
 * two that find it full in one moment lose the earlier half.
 */
export function createRotatingFile(path: string, maxBytes: number): RotatingFile {
  let file: FileHandle | undefined;
  const reopen = async () => {
    await file?.close();
    file = undefined;
    file = await open(path, 'a', mode);
    // One that was there before may be readable to others.
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
      // Another process may have replaced it meanwhile.
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
