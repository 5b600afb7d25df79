import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';

/**
 * Creates a folder for the test. It is removed when the test ends, after everything opened in it since has closed.
 * Concurrent tests pass in their own `onTestFinished`.
 */
export function aFolder(onEnd: (remove: () => void) => void = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-test-'));
  onEnd(() => remove(folder));
  return folder;
}

/** A folder for the tests of one `describe`, which exists from the first to the last of them. */
export function sharedFolder(): () => string {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'parley-test-'));
  });
  afterAll(() => remove(folder));
  return () => folder;
}

function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
