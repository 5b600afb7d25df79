import BetterSqlite3 from 'better-sqlite3';
import { ParleyError } from '#contracts/errors.ts';
import type { Store } from '../base/command.ts';
import { directDatabase } from './direct-database.ts';
import { hasCurrentSchema } from './inspect-sqlite.ts';
import { errorOf, faultOf } from './writer-messages.ts';

/** Opens a connection to the database file for reading. Throws SQLite's error if it can't be opened. */
export function openReader(
  file: string,
  connection = new BetterSqlite3(file, { readonly: true }),
): Required<Pick<Store, 'read' | 'version'>> & { close(): void } {
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
export function openReadOnlyStore(
  file: string,
  reason: ParleyError,
  connection?: BetterSqlite3.Database,
): Store {
  const reader = openReader(file, connection);
  return {
    read: reader.read,
    write: () => Promise.reject(reason),
    writeAlong: () => undefined,
    broken: Promise.withResolvers<void>().promise,
    close: async () => reader.close(),
  };
}

/**
 * Opens a file for reading if its schema is what this version makes, without the writer's thread, a third of what a
 * command takes. Undefined for any other file: opening it to write brings it up to date, or says what is wrong with it.
 */
export async function openCurrentFile(file: string): Promise<Store | undefined> {
  let connection: BetterSqlite3.Database | undefined;
  try {
    // As the file's last user, a connection that can't write would leave the log of changes behind.
    connection = new BetterSqlite3(file, { fileMustExist: true });
    connection.pragma('query_only = 1');
    if (await hasCurrentSchema(connection)) {
      const reason = new ParleyError('internal', 'This store was opened for reading.');
      return openReadOnlyStore(file, reason, connection);
    }
  } catch {
    // A file that can't be read like this may still be repaired by the writer.
  }
  connection?.close();
  return undefined;
}
