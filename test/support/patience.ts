/**
 * How long a test waits for something that must happen, ms. It costs nothing if all is well, so it is long enough
 * for a slow and loaded machine; where speed is the promise, it is measured separately.
 */
export const patienceMs = Number(process.env.TEST_PATIENCE_MS ?? 60_000);
