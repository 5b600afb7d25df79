// Libraries of some hundred small files, each read from one file that was made of them: that takes 10 ms
// instead of 140 ms for Kysely, in each thread, 15 ms instead of 120 ms for Anthropic's SDK, and 20 ms
// instead of 60 ms for zod.
// `scripts/bundle-libraries.mjs` makes the files, `bin/use-bundles.mjs` has them read. Where they are
// missing, the libraries are read as they came.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** By library, what is imported of it. */
const imported = {
  '@anthropic-ai/sdk': ['@anthropic-ai/sdk'],
  kysely: ['kysely', 'kysely/migration'],
  zod: ['zod'],
};

const libraries = Object.entries(imported).map(([name, specifiers]) => {
  const folder = fileURLToPath(new URL(`../node_modules/${name}`, import.meta.url));
  // Within the library's own folder: npm removes it together with the version that it was made of.
  const target = `${folder}/.bundle`;
  const parts = specifiers.map((specifier) => {
    const part = specifier.replaceAll('/', '-');
    return { specifier, part, file: `${target}/${part}.mjs` };
  });
  return { folder, target, parts };
});

/** What can be read from one file. */
export const madeBundles = () =>
  libraries.flatMap(({ parts }) => parts).filter(({ file }) => existsSync(file));

/** Libraries that are installed and have no bundle yet. */
export const unbundledLibraries = () =>
  libraries.filter(({ folder, target }) => existsSync(folder) && !existsSync(target));
