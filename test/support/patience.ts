/**
 * How long a test waits for what must come, ms. It costs nothing where all is well, so it is long enough
 * for a slow and loaded machine; what must be fast is measured where that is the promise.
 */
export const patienceMs = Number(process.env.TEST_PATIENCE_MS ?? 60_000);
