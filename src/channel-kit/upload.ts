import { access, constants, stat } from 'node:fs/promises';

/** Returns the size of a local file in bytes; undefined if it can't be read (why doesn't concern the network). */
export async function sizeOf(path: string): Promise<number | undefined> {
  try {
    await access(path, constants.R_OK);
    const entry = await stat(path);
    return entry.isFile() ? entry.size : undefined;
  } catch {
    return undefined; // The caller reports it to the core.
  }
}

/** Returns a name for an upload, at most 120 characters; `reserved` matches characters that would end it too early. */
export function uploadName(name: string, reserved: RegExp): string {
  const bare = name
    .toWellFormed()
    .replace(/\p{Cc}/gu, '_')
    .replace(reserved, '_')
    .trim();
  return bare.slice(-120) || 'file';
}
