import BetterSqlite3 from 'better-sqlite3';
import type { ParleyError } from '#contracts/errors.ts';
import type { Store } from '../base/command.ts';
import { directDatabase } from './direct-database.ts';
import { errorOf, faultOf } from './writer-messages.ts';

/** Opens a read-only connection to the database file. Throws SQLite's error if it can't be opened. */
export function openReader(file: string): Required<Pick<Store, 'read' | 'version'>> & { close(): void } {
  const connection = new BetterSqlite3(file, { readonly: true });
  connection.pragma('cache_size = -4000');
  const database = directDatabase(connection);
  const dataVersion = connection.prepare<[], number>('pragma data_version').pluck();
  return {
    read: async (query, input) => {
      try {
        return await query.run(
          { ...database, now: Date.now(), dialect: 'sqlite', advanceNow: undefined },
          input,
        );
      } catch (error) {
        throw errorOf(faultOf(error, file));
      }
    },
    // This connection never writes, so each commit is another connection's, which SQLite counts.
    version: () => {
      try {
        return dataVersion.get() ?? 0;
      } catch (error) {
        throw errorOf(faultOf(error, file));
      }
    },
    close: () => void connection.close(),
  };
}

/** Opens a store for a database that can't be written; every write rejects with `reason`. */
export function openReadOnlyStore(file: string, reason: ParleyError): Store {
  const reader = openReader(file);
  return {
    read: reader.read,
    write: () => Promise.reject(reason),
    writeAlong: () => undefined,
    broken: Promise.withResolvers<void>().promise,
    close: async () => reader.close(),
  };
}
