import { afterAll, beforeAll, onTestFinished } from 'vitest';
import type { Store } from '../../src/store/base/command.ts';
import { openStore } from './open-store.ts';
import { aFolder, sharedFolder } from './own-folder.ts';

/** A SQLite store owned by the test, closed when the test ends, and its folder. */
export async function aStore(): Promise<{ readonly store: Store; readonly dataDir: string }> {
  const dataDir = aFolder();
  const store = await openStore({ kind: 'sqlite', dataDir });
  onTestFinished(() => store.close());
  return { store, dataDir };
}

/** A SQLite store for the tests of one `describe`, opened before the first and closed after the last of them. */
export function openOwnStore(dataDir = sharedFolder()): () => Store {
  let opened: Store | undefined;
  beforeAll(async () => {
    opened = await openStore({ kind: 'sqlite', dataDir: dataDir() });
  });
  afterAll(() => opened?.close());
  return () => {
    if (!opened) throw new Error('the store is not open');
    return opened;
  };
}
