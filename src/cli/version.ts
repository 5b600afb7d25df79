import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Set by scripts/bundle.mjs; empty if the bundle was made without the Git history. */
declare const PARLEY_COMMIT: string | undefined;

/** Reads the version from package.json, which is two folders up both in a bundle and in the sources. */
export function readVersion(): string {
  const file = readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8');
  const { version } = JSON.parse(file) as { version: string };
  return version;
}

/** Returns the version with the commit that the bundle was made from, if known: `0.1.0 (1daf435)`. */
export function describeVersion(): string {
  const version = readVersion();
  const commit = typeof PARLEY_COMMIT === 'undefined' ? '' : PARLEY_COMMIT;
  return commit === '' ? version : `${version} (${commit})`;
}
