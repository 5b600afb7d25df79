import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '#channel-kit/parse-json.ts';

/**
 * Where the page of this data folder is served, for the command line: with port 0, or a port that was given
 * in the environment of the gateway only, nothing else says so. In the folder that holds the token too.
 */
const fileName = 'page-address.json';

const addressSchema = z.object({ url: z.url({ protocol: /^http$/ }), pid: z.int().positive() });

/** Writes the page's address for the command line. Rejects when the disk refuses it. */
export async function writeAddress(dataDir: string, url: string): Promise<void> {
  const text = JSON.stringify({ url, pid: process.pid });
  await writeFile(join(dataDir, fileName), `${text}\n`, { mode: 0o600 });
}

/**
 * Undefined when no living process serves a page from the folder: the port may be another program's by now,
 * which must not be sent the token.
 */
export async function readAddress(dataDir: string): Promise<string | undefined> {
  const written = await readWritten(dataDir);
  return written !== undefined && isAlive(written.pid) ? written.url : undefined;
}

/** Unless another gateway has written its own there meanwhile. */
export async function removeAddress(dataDir: string): Promise<void> {
  const written = await readWritten(dataDir);
  if (written?.pid === process.pid) await rm(join(dataDir, fileName), { force: true });
}

async function readWritten(dataDir: string) {
  try {
    return addressSchema.safeParse(parseJson(await readFile(join(dataDir, fileName), 'utf8'))).data;
  } catch {
    // None was written, or a crash of the machine cut it off: the configuration says where to ask.
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
