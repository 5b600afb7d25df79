import { link, readFile, rm, writeFile } from 'node:fs/promises';

/**
 * Gives a file its one content and returns what it holds: of several processes that write at once, one wins and all read the same.
 * A complete file is linked into its place, so nobody reads half of it, whenever the power fails. Rejects with the file system's error.
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

/** The file's text; undefined when there is no such file. Rejects with any other error of the file system. */
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
