import { readFile, rename, writeFile } from 'node:fs/promises';
import type { z } from 'zod';
import { parseJson } from './parse-json.ts';

/** Reads a channel's own small JSON file; undefined if it hasn't been written yet or another program wrote it. */
export async function readStateFile<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  try {
    return schema.parse(parseJson(await readFile(path, 'utf8')));
  } catch {
    return undefined;
  }
}

/** Atomically replaces a file that only this user can read. Rejects with the disk's error. */
export async function replaceFile(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
}
