import { link, readFile, rm, writeFile } from 'node:fs/promises';

/**
 * Writes a file once and returns its content: if several processes write at the same time, one wins and all read the
 * same. A complete file is linked into place, so nobody ever reads half of it, even after a power failure. Rejects with
 * the file system's error.
 */
export async function writeOnce(path: string, text: string, mode = 0o666): Promise<string> {
  const offer = `${path}.${crypto.randomUUID()}`;
  await writeFile(offer, text, { mode, flush: true });
  try {
    await link(offer, path);
    return text;
  } catch (error) {
    if (!isFileError(error, 'EEXIST')) throw error;
    return await readFile(path, 'utf8');
  } finally {
    await rm(offer, { force: true });
  }
}

/** Returns the file's text; undefined if there is no such file. Rejects with any other file system error. */
export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isFileError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function isFileError(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
