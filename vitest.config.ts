import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { defineConfig } from 'vitest/config';
import { testBundleFolder } from './bin/bundle.mjs';
import { LongestFirst } from './test/support/longest-first.ts';
import { collectorFlags } from './test/support/node-flags.ts';
import { patienceMs } from './test/support/patience.ts';

const bundle = testBundleFolder(import.meta.dirname);
const isBundled = existsSync(bundle);
const useBundle = new URL('test/support/use-bundle.mjs', import.meta.url);
useBundle.searchParams.set('bundle', pathToFileURL(bundle).href);

// biome-ignore lint/style/noDefaultExport: vitest reads its configuration from the default export
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // Threads and gateways that the tests start come from the bundle if it is that of the sources, as after
    // `npm test` has made it: reading them file by file was a third of the suite's processor time.
    execArgv: [...collectorFlags, ...(isBundled ? ['--import', useBundle.href] : [])],
    env: isBundled ? { PARLEY_TEST_BUNDLE: bundle } : {},
    // One process for many files: no test changes what the next one finds (test/architecture), and loading Parley
    // anew for each file took half of what most files take.
    isolate: false,
    // Most tests wait for other processes: four files at a time even where there are only two cores.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/drop-spares.ts'],
    setupFiles: ['compiled-once', 'patient-vitest', 'whole-lengths'].map((name) => `test/support/${name}.ts`),
    expect: { poll: { timeout: patienceMs, interval: 20 } },
    // Both only end what hangs; a test has its own patience.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 5000,
    // Plugins in a test's folder are loaded by Node.js itself, as a gateway loads them.
    server: { deps: { external: [/\/parley-test-[^/]+\//] } },
    // A spy of one file is none of the next one's.
    restoreMocks: true,
  },
});
