import { access, constants, stat } from 'node:fs/promises';

/** The size of a local file in bytes; undefined when it cannot be read: why is not the network's matter. */
export async function sizeOf(path: string): Promise<number | undefined> {
  try {
    await access(path, constants.R_OK);
    const entry = await stat(path);
    return entry.isFile() ? entry.size : undefined;
  } catch {
    return undefined; // The caller says so to core.
  }
}

/** A name for an upload, of at most 120 characters; `reserved` are those that would end it where it is written. */
export function uploadName(name: string, reserved: RegExp): string {
  const bare = name
    .toWellFormed()
    .replace(/\p{Cc}/gu, '_')
    .replace(reserved, '_')
    .trim();
  return bare.slice(-120) || 'file';
}
