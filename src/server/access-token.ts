import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readIfPresent, writeOnce } from '../processes/folder-lock.ts';

const tokenBytes = 32;

/** Returns the owner's token of this data folder, created on the first start: 256 bits, readable by this user only. */
export async function accessToken(dataDir: string): Promise<string> {
  const path = join(dataDir, 'token');
  const kept = (await readIfPresent(path))?.trim();
  if (kept !== undefined && isToken(kept)) return kept;
  // An empty file would be an empty token, which lets everybody in.
  if (kept !== undefined) await rm(path, { force: true });
  const token = randomBytes(tokenBytes).toString('base64url');
  return (await writeOnce(path, `${token}\n`, 0o600)).trim();
}

/** Returns the stored token; undefined before the first start, and when the file's content is too short to be one. */
export async function keptToken(dataDir: string): Promise<string | undefined> {
  const kept = (await readIfPresent(join(dataDir, 'token')))?.trim();
  return kept !== undefined && isToken(kept) ? kept : undefined;
}

const isToken = (text: string): boolean => text.length >= tokenBytes;
