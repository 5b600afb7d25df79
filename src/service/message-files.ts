/** Files of messages that programs send: stored in the media folder before their message is. */
import { createHash } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathsOf, type StoredAttachment } from '#contracts/attachment.ts';
import { newMediaName } from '../inbound/media.ts';
import type { FileReader } from '../media/file-reader.ts';
import { sniffType } from '../media/sniff.ts';
import { cleanLabel } from '../texts/untrusted-text.ts';

/** A file, under the name that its sender gave it. */
export type MessageFile = { readonly name: string; readonly bytes: Buffer };

/** The place of programs' files, and what reads them for the model; absent: they are shown as they are, or by name. */
export type FilesPlace = { readonly mediaDir: string; readonly reader?: FileReader };

/** Stores and reads the files of an item. What a process that is killed leaves behind is removed with old media. */
export async function saveFiles(
  { mediaDir, reader }: FilesPlace,
  itemId: string,
  files: readonly MessageFile[],
): Promise<readonly StoredAttachment[]> {
  if (files.length > 0) await mkdir(mediaDir, { recursive: true, mode: 0o700 });
  const signal = AbortSignal.timeout(maxReadMs);
  return Promise.all(
    files.map(async ({ name, bytes }) => {
      const path = newMediaName(itemId);
      await writeFile(join(mediaDir, path), bytes, { mode: 0o600, flush: true });
      const facts = { mimeType: sniffType(bytes), sizeBytes: bytes.length, name: cleanLabel(name) || 'file' };
      const file = { kind: 'stored', path, ...facts } as const;
      if (reader === undefined) return file;
      const begun = await reader.begin(file, files.length);
      return reader.finish(begun, { among: files.length, newName: () => newMediaName(itemId), signal });
    }),
  );
}

/** How long a call waits for its files to be read, ms. */
const maxReadMs = 20_000;

/** Removes files whose item isn't stored. */
export async function removeFiles(folder: string, files: readonly StoredAttachment[]): Promise<void> {
  for (const file of files)
    if (file.kind === 'stored')
      for (const path of pathsOf(file)) await rm(join(folder, path), { force: true });
}

/** Hashes names and contents. */
export function digestOfFiles(files: readonly MessageFile[]): readonly string[] {
  return files.map(({ name, bytes }) =>
    createHash('sha256').update(`${name}\n`).update(bytes).digest('base64url'),
  );
}
