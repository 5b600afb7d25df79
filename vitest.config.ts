import { defineConfig } from 'vitest/config';

// biome-ignore lint/style/noDefaultExport: vitest reads its configuration from the default export
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // Most tests wait for other processes: two files at a time even where there are only two cores.
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    teardownTimeout: 5000,
  },
});
