import BetterSqlite3 from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import { storeSetup } from '../../src/steps.ts';
import type { Store } from '../../src/store/base/command.ts';
import { migrate } from '../../src/store/migrate.ts';
import { cacheStatements, directDatabase } from '../../src/store/sqlite/direct-database.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';

type Connection = InstanceType<typeof BetterSqlite3>;

/**
 * A store on SQLite in memory and in this thread, without a transaction around a step. Its statements come from
 * `prepare`, which sees each statement's text once and may wrap it; those of the migration don't.
 */
export async function openMemoryStore(
  prepareWith: (sqlite: Connection) => (text: string) => unknown,
): Promise<{ readonly store: Store; readonly sqlite: Connection }> {
  const sqlite = new BetterSqlite3(':memory:');
  await migrate(new Kysely({ dialect: new SqliteDialect({ database: cacheStatements(sqlite) }) }));
  const prepare = prepareWith(sqlite);
  const database = directDatabase(Object.assign(Object.create(sqlite) as Connection, { prepare }));
  const setup = storeSetup(textsFor('en'));
  const tx = () =>
    ({ ...database, now: Date.now(), dialect: 'sqlite', advanceNow: undefined, ...setup }) as const;
  const store: Store = {
    write: (command, input) => command.run(tx(), input),
    writeAlong: () => undefined,
    read: (query, input) => query.run(tx(), input),
    broken: new Promise(() => undefined),
    close: async () => void sqlite.close(),
  };
  return { store, sqlite };
}
