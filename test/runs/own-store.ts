import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import type { Store } from '../../src/store/base/command.ts';
import { openStore } from '../support/open-store.ts';

/** A SQLite store for the tests of one `describe`, opened before the first and gone after the last of them. */
export function openOwnStore(): () => Store {
  let dataDir = '';
  let opened: Store | undefined;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'parley-runs-'));
    opened = await openStore({ kind: 'sqlite', dataDir });
  });
  afterAll(async () => {
    await opened?.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  });
  return () => {
    if (!opened) throw new Error('the store is not open');
    return opened;
  };
}
