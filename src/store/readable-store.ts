import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ParleyError } from '#contracts/errors.ts';
import type { Store } from './base/command.ts';
import { openReadOnlyStore } from './sqlite/read-only-store.ts';

/** The folder's SQLite file for reading alone; undefined when there is none or it can't be read either. */
export function readableStore(dataDir: string, reason: ParleyError): Store | undefined {
  const file = join(dataDir, 'parley.db');
  if (!existsSync(file)) return undefined;
  try {
    return openReadOnlyStore(file, reason);
  } catch {
    // Why it can't be written has been said, and is the greater trouble.
    return undefined;
  }
}

/** For a database that can't even be read: everything rejects with `reason`. */
export function absentStore(reason: ParleyError): Store {
  return {
    read: () => Promise.reject(reason),
    write: () => Promise.reject(reason),
    writeAlong: () => undefined,
    broken: Promise.withResolvers<void>().promise,
    close: async () => undefined,
  };
}

/** A store that can be let go of while others still hold it: from then on everything rejects with `reason`. */
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
