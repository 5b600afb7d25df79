import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Set by scripts/bundle.mjs; empty where the bundle was made without the history. */
declare const PARLEY_COMMIT: string | undefined;

/** Reads the version from package.json, two folders up in a bundle as in the sources. */
export async function readVersion(): Promise<string> {
  const file = await readFile(join(import.meta.dirname, '../../package.json'), 'utf8');
  const { version } = JSON.parse(file) as { version: string };
  return version;
}

/** Adds the commit that the bundle was made from, where one is known: `0.1.0 (1daf435)`. */
export async function describeVersion(): Promise<string> {
  const version = await readVersion();
  const commit = typeof PARLEY_COMMIT === 'undefined' ? '' : PARLEY_COMMIT;
  return commit === '' ? version : `${version} (${commit})`;
}
