import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Store } from '../../src/store/base/command.ts';
import { openStore } from './open-store.ts';

/** A real SQLite store owned by the test, opened on first use: most test servers never use it. */
export function lazyStore(): Pick<Store, 'read' | 'write' | 'writeAlong'> & { close(): Promise<void> } {
  let opening: Promise<{ readonly store: Store; readonly dir: string }> | undefined;
  const open = async () => {
    const dir = await mkdtemp(join(tmpdir(), 'parley-lazy-'));
    return { dir, store: await openStore({ kind: 'sqlite', dataDir: dir }) };
  };
  const opened = async () => {
    opening ??= open();
    return (await opening).store;
  };
  return {
    read: async (query, input) => (await opened()).read(query, input),
    write: async (command, input) => (await opened()).write(command, input),
    writeAlong: (command, input) => void opened().then((store) => store.writeAlong(command, input)),
    close: async () => {
      const { store, dir } = (await opening) ?? {};
      await store?.close();
      if (dir !== undefined) await rm(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
