import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Set by scripts/bundle.mjs; empty if the bundle was made without the Git history. */
declare const PARLEY_COMMIT: string | undefined;

/** Reads the version from package.json, which is two folders up both in a bundle and in the sources. */
export async function readVersion(): Promise<string> {
  const file = await readFile(join(import.meta.dirname, '../../package.json'), 'utf8');
  const { version } = JSON.parse(file) as { version: string };
  return version;
}

/** Returns the version with the commit that the bundle was made from, if known: `0.1.0 (1daf435)`. */
export async function describeVersion(): Promise<string> {
  const version = await readVersion();
  const commit = typeof PARLEY_COMMIT === 'undefined' ? '' : PARLEY_COMMIT;
  return commit === '' ? version : `${version} (${commit})`;
}
