import { defineConfig } from 'vitest/config';
import { madeBundles } from './bin/library-bundles.mjs';

// biome-ignore lint/style/noDefaultExport: vitest reads its configuration from the default export
export default defineConfig({
  resolve: {
    alias: madeBundles().map(({ specifier, file }) => ({
      find: new RegExp(`^${specifier}$`),
      replacement: file,
    })),
  },
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // For the threads that the code under test starts, which know nothing of an alias.
    execArgv: ['--import', new URL('bin/use-bundles.mjs', import.meta.url).href],
    // Most tests wait for other processes: two files at a time even where there are only two cores.
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    teardownTimeout: 5000,
  },
});
