import { readFile, rename, writeFile } from 'node:fs/promises';
import type { z } from 'zod';
import { parseJson } from './parse-json.ts';

/** Reads a small JSON file of a channel's own; undefined before it was written, or when it is another program's. */
export async function readStateFile<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  try {
    return schema.parse(parseJson(await readFile(path, 'utf8')));
  } catch {
    return undefined;
  }
}

/** Replaces a file as a whole, for the owner alone. Rejects with the disk's own error. */
export async function replaceFile(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
}
