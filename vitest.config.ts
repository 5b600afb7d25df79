import { defineConfig } from 'vitest/config';
import { madeBundles } from './bin/library-bundles.mjs';
import { LongestFirst } from './test/support/longest-first.ts';
import { patienceMs } from './test/support/patience.ts';

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
    // One process for many files: no test changes what the next one finds (test/architecture), and loading Parley
    // anew for each file took half of what most files take.
    isolate: false,
    // Most tests wait for other processes: three files at a time even where there are only two cores.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    setupFiles: ['test/support/compiled-once.ts', 'test/support/patient-vitest.ts'],
    expect: { poll: { timeout: patienceMs, interval: 20 } },
    // Both only end what hangs; a test has its own patience.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 5000,
    // A spy of one file is none of the next one's.
    restoreMocks: true,
  },
});
