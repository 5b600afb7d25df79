/** Files of messages that programs send: stored in the media folder before their message is. */
import { createHash } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StoredAttachment } from '#contracts/attachment.ts';
import { newMediaName } from '../inbound/media.ts';
import { sniffType } from '../media/sniff.ts';
import { cleanLabel } from '../texts/untrusted-text.ts';

/** A file, under the name that its sender gave it. */
export type MessageFile = { readonly name: string; readonly bytes: Buffer };

/** Stores the files of an item. What a process that is killed leaves behind is removed with old media. */
export async function saveFiles(
  folder: string,
  itemId: string,
  files: readonly MessageFile[],
): Promise<readonly StoredAttachment[]> {
  if (files.length > 0) await mkdir(folder, { recursive: true, mode: 0o700 });
  return Promise.all(
    files.map(async ({ name, bytes }) => {
      const path = newMediaName(itemId);
      await writeFile(join(folder, path), bytes, { mode: 0o600, flush: true });
      const facts = { mimeType: sniffType(bytes), sizeBytes: bytes.length, name: cleanLabel(name) || 'file' };
      return { kind: 'stored', path, ...facts } as const;
    }),
  );
}

/** Removes files whose item isn't stored. */
export async function removeFiles(folder: string, files: readonly StoredAttachment[]): Promise<void> {
  for (const file of files) if (file.kind === 'stored') await rm(join(folder, file.path), { force: true });
}

/** Hashes names and contents. */
export function digestOfFiles(files: readonly MessageFile[]): readonly string[] {
  return files.map(({ name, bytes }) =>
    createHash('sha256').update(`${name}\n`).update(bytes).digest('base64url'),
  );
}
