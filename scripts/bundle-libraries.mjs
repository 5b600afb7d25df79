// Makes the bundles of bin/library-bundles.mjs that are missing. Without rolldown, which an installation
// for production leaves out, there are none, and Parley starts a little slower.
import { rename, rm } from 'node:fs/promises';
import { unbundledLibraries } from '../bin/library-bundles.mjs';

try {
  const libraries = unbundledLibraries();
  const { rolldown } = libraries.length === 0 ? {} : await import('rolldown').catch(() => ({}));
  if (rolldown) for (const library of libraries) await bundle(library, rolldown);
} catch (error) {
  console.error(`Libraries are read file by file, which takes longer: ${error.message}`);
}

/** All parts of a library at once, so that they share what they have in common. */
async function bundle({ folder, target, parts }, rolldown) {
  const input = Object.fromEntries(parts.map(({ part, specifier }) => [part, specifier]));
  const build = await rolldown({ input, platform: 'node', cwd: folder });
  const making = `${target}-${process.pid}`;
  const names = { entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' };
  await build.write({ dir: making, format: 'esm', ...names });
  await build.close();
  // A process starting meanwhile finds all of it or nothing; a second builder writes the same files.
  await rename(making, target).catch(() => rm(making, { recursive: true, force: true }));
}
