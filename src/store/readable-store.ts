import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ParleyError } from '#contracts/errors.ts';
import type { Store } from './base/command.ts';
import { openCurrentFile, openReadOnlyStore } from './sqlite/read-only-store.ts';

/** Opens the folder's SQLite file read-only; undefined when there is none or it can't be read either. */
export function readableStore(dataDir: string, reason: ParleyError): Store | undefined {
  const file = join(dataDir, 'parley.db');
  if (!existsSync(file)) return undefined;
  try {
    return openReadOnlyStore(file, reason);
  } catch {
    // The reason why it can't be written is already reported, and is the more serious problem.
    return undefined;
  }
}

/** Opens the folder's SQLite file for a command that only reads; undefined unless it is there with a current schema. */
export async function currentStore(dataDir: string): Promise<Store | undefined> {
  const file = join(dataDir, 'parley.db');
  return existsSync(file) ? openCurrentFile(file) : undefined;
}

/** Returns a store for a database that can't even be read: all reads and writes reject with `reason`. */
export function absentStore(reason: ParleyError): Store {
  return {
    read: () => Promise.reject(reason),
    write: () => Promise.reject(reason),
    writeAlong: () => undefined,
    broken: Promise.withResolvers<void>().promise,
    close: async () => undefined,
  };
}

/** Makes a store that can be released while others still use it; after that, their calls reject with `reason`. */
export function releasable(store: Store, reason: ParleyError): Store & { release(): Promise<void> } {
  let current = store;
  const release = async () => {
    const held = current;
    current = absentStore(reason);
    await held.close();
  };
  return {
    read: (query, input) => current.read(query, input),
    write: (command, input) => current.write(command, input),
    writeAlong: (command, input) => current.writeAlong(command, input),
    broken: store.broken,
    close: release,
    release,
  };
}
