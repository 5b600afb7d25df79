// Locates the bundle that scripts/bundle.mjs makes for the current state of the sources.
// Plain JavaScript without dependencies, for any Node.js from 18 on.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The inputs of a bundle. The lock file represents the dependencies. */
const sources = [
  'src',
  'channels',
  'plugins',
  'package.json',
  'package-lock.json',
  'scripts/bundle.mjs',
  'bin/chunks.cjs',
];
/** The end-to-end tests have their own gateway, with kill points; the others have their own writer thread. */
const testSources = [...sources, 'test/e2e', 'test/support/serve-writers.ts'];
/** The lane benchmarks have their own gateway, without a network. */
const benchSources = [...sources, 'bench'];

/**
 * Returns the folder of the bundle that `parley` runs. In a package, which has no sources, it is the one that came
 * with it. In a clone its name is derived from paths, sizes and times of the sources, so that a build never replaces
 * files that a running process may still load.
 */
export const bundleFolder = (root) =>
  existsSync(join(root, 'src')) ? join(root, 'dist', stampOf(root, sources)) : packedFolder(root);

export const testBundleFolder = (root) => join(root, 'dist', `test-${stampOf(root, testSources)}`);

export const benchBundleFolder = (root) => join(root, 'dist', `bench-${stampOf(root, benchSources)}`);

export const packedFolder = (root) => join(root, 'dist', 'package');

function stampOf(root, paths) {
  const hash = createHash('sha256');
  for (const path of paths) addTo(hash, root, path);
  return hash.digest('hex').slice(0, 16);
}

function addTo(hash, root, path) {
  const state = statSync(join(root, path), { throwIfNoEntry: false });
  if (state === undefined) return;
  if (!state.isDirectory()) hash.update(`${path} ${state.size} ${state.mtimeMs}\n`);
  else for (const name of readdirSync(join(root, path)).sort()) addTo(hash, root, `${path}/${name}`);
}
