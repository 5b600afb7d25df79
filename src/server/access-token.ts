import { randomBytes } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const tokenBytes = 32;

/** The owner's token of this data folder, made on the first start; 256 bits, readable by this user only. */
export async function accessToken(dataDir: string): Promise<string> {
  const path = join(dataDir, 'token');
  const kept = await keptToken(dataDir);
  if (kept !== undefined) return kept;
  const token = randomBytes(tokenBytes).toString('base64url');
  // Whole or not at all: an empty file would be an empty token, and let everybody in.
  const partial = `${path}.part`;
  await writeFile(partial, `${token}\n`, { mode: 0o600, flush: true });
  await rename(partial, path);
  return token;
}

/** Undefined on the first start, and when what lies there is too short to be a token. */
export async function keptToken(dataDir: string): Promise<string | undefined> {
  try {
    const token = (await readFile(join(dataDir, 'token'), 'utf8')).trim();
    return token.length >= tokenBytes ? token : undefined;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
