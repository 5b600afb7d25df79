import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';

/**
 * A folder of the test's own; it goes with the test, after all that the test has opened in it since. Tests that run
 * beside each other hand in their own `onTestFinished`.
 */
export function aFolder(onEnd: (remove: () => void) => void = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-test-'));
  onEnd(() => remove(folder));
  return folder;
}

/** A folder for the tests of one `describe`, there from the first to the last of them. */
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
