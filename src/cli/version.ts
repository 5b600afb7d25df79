import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

export async function readVersion(): Promise<string> {
  const file = await readFile(join(import.meta.dirname, '../../package.json'), 'utf8');
  const { version } = JSON.parse(file) as { version: string };
  return version;
}
