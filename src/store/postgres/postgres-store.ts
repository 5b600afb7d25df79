import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { ParleyError } from '#contracts/errors.ts';
import type {
  NamedStatement,
  RemoteAnswer,
  RemoteStatements,
  StepTx,
  Store,
  StoreCommand,
  StoreQuery,
  StoreSetup,
} from '../base/command.ts';
import type { Tables } from '../base/tables.ts';
import { migrate } from '../migrate.ts';
import { Connection, kyselyOver } from './connection.ts';
import { type Lender, sharing } from './shared-connection.ts';

/**
 * Deadlock and serialization failure, and a statement that was prepared before a newer version has added a column: the
 * transaction was undone and may simply be run again.
 */
const repeatable = new Set(['40P01', '40001']);
const maxRepeats = 5;

export type PostgresOptions = {
  readonly url: string;
  readonly poolSize: number;
  /** A server that says nothing for so long is away, ms. Default: 30 s. */
  readonly silenceMs?: number;
};

/**
 * A connection whose other end is gone without a word would be waited for until TCP gives up, a quarter of an hour.
 * No statement takes as long: a transaction that stands still ends after seconds, and so does the wait for its rows.
 */
const longestSilenceMs = 30_000;

/**
 * Opens (and migrates) a PostgreSQL database. Each command is a transaction of its own from a pool.
 * Throws `store_unavailable` with the reason; the URL's password never appears in it.
 */
export async function openPostgresStore(options: PostgresOptions, setup: StoreSetup): Promise<Store> {
  await migrateDatabase(options, setup.migrations);
  const pool = createPool(options);
  const withConnection = lender(pool, options);
  const clocks = new Map<string, Clock>();
  const runOnce = <Input, Output>(command: StoreCommand<Input, Output>, input: Input): Promise<Output> =>
    withConnection(async (connection) => {
      const tx = new PostgresTx(connection, setup);
      const clock = clocks.get(command.name) ?? 'by-lock';
      connection.begin(clock === 'asked' ? (now) => tx.advanceNow(now) : undefined);
      try {
        if (clock === 'awaited') tx.advanceNow(await connection.readClock());
        const output = await command.run(tx, input);
        tx.end();
        await connection.commit();
        return output;
      } catch (error) {
        tx.end();
        if (error instanceof ClockUnread) clocks.set(command.name, clock === 'by-lock' ? 'asked' : 'awaited');
        await connection.rollback();
        throw error;
      }
    });
  const write = <Input, Output>(command: StoreCommand<Input, Output>, input: Input): Promise<Output> =>
    repeatOnConflict(() => runOnce(command, input));

  const readBy = <Input, Output>(lend: Lender, query: StoreQuery<Input, Output>, input: Input) =>
    repeatOnConflict(() =>
      lend(async (connection) => {
        connection.beginReading();
        const now = query.usesClock ? await connection.readClock() : Date.now();
        const { db } = connection;
        return query.run({ db, now, dialect: 'postgres', advanceNow: undefined, remote: connection }, input);
      }),
    );
  // The only connection of a pool would never be free for a write while there is always somebody who reads.
  const shared = options.poolSize > 1 ? sharing(withConnection) : withConnection;
  const readAmongOthers = async <Input, Output>(query: StoreQuery<Input, Output>, input: Input) => {
    try {
      return await readBy(shared, query, input);
    } catch (error) {
      // It may be another's statement that has failed.
      if (error instanceof ParleyError && error.code !== 'internal') throw error;
      return readBy(withConnection, query, input);
    }
  };

  return {
    broken: Promise.withResolvers<void>().promise,
    write,
    writeAlong: (command, input) => {
      // For freshness only: a lost image costs nothing.
      write(command, input).catch(() => undefined);
    },
    read: (query, input) =>
      query.isShared ? readAmongOthers(query, input) : readBy(withConnection, query, input),
    close: () => pool.end(),
  };
}

function lender(pool: pg.Pool, { silenceMs = longestSilenceMs }: PostgresOptions): Lender {
  const connections = new WeakMap<pg.PoolClient, Connection>();
  return async (use) => {
    const client = await connectTo(pool);
    const connection = connections.get(client) ?? new Connection(client, silenceMs);
    connections.set(client, connection);
    let isSound = true;
    try {
      return await use(connection);
    } catch (error) {
      isSound = error instanceof ParleyError;
      throw error;
    } finally {
      // One that has failed may be in any state: the pool makes another.
      client.release(connection.hasFailed || !isSound);
    }
  };
}

async function migrateDatabase(
  { url, silenceMs = longestSilenceMs }: PostgresOptions,
  migrations: StoreSetup['migrations'],
): Promise<void> {
  // A change of a large table may take long.
  const connecting = { connectionString: url, connectionTimeoutMillis: silenceMs };
  const pool = withoutUncaughtErrors(new pg.Pool({ ...connecting, max: 1 }));
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  try {
    (await connectTo(pool)).release();
    await migrate(db, migrations);
  } catch (error) {
    const fault = faultOf(error instanceof ParleyError ? error.cause : error);
    throw fault.code === 'internal' ? error : fault;
  } finally {
    await db.destroy();
  }
}

function createPool({ url, poolSize, silenceMs = longestSilenceMs }: PostgresOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: poolSize,
    connectionTimeoutMillis: silenceMs,
    // A process that stands still inside a transaction must not hold a lane's row beyond its lease.
    idle_in_transaction_session_timeout: 5_000,
  });
  return withoutUncaughtErrors(pool);
}

/**
 * A connection of the pool. Whatever keeps one from being made is no fault of what it is wanted for: a name that can't be
 * looked up, a server that isn't trusted, a proxy with words of its own.
 */
async function connectTo(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    const fault = faultOf(error);
    throw fault.code === 'internal' ? awayFault(error) : fault;
  }
}

/** Without listeners, a connection that breaks would end the process. */
function withoutUncaughtErrors(pool: pg.Pool): pg.Pool {
  // One that breaks at rest is replaced by the pool; the next command says if that fails.
  pool.on('error', () => undefined);
  // One that breaks in a transaction, between two queries, fails the next query.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

class PostgresTx implements StepTx, RemoteStatements {
  readonly dialect = 'postgres';
  readonly texts: StepTx['texts'];
  readonly chatCommands: StepTx['chatCommands'];
  readonly remote: RemoteStatements = this;
  #db: Kysely<Tables> | undefined;
  #connection: Connection | undefined;
  #now: number | undefined;

  constructor(connection: Connection, { texts, chatCommands }: Pick<StoreSetup, 'texts' | 'chatCommands'>) {
    this.#connection = connection;
    this.texts = texts;
    this.chatCommands = chatCommands;
  }

  /** Made for steps that build a query: most have all of theirs prepared. */
  get db(): Kysely<Tables> {
    this.#db ??= kyselyOver(this);
    return this.#db;
  }

  get now(): number {
    if (this.#now === undefined) throw new ClockUnread();
    return this.#now;
  }

  advanceNow(now: number): void {
    this.#now = Math.max(this.#now ?? 0, now);
  }

  ask(statement: NamedStatement, parameters: readonly unknown[]): Promise<RemoteAnswer> {
    return this.#open().ask(statement, parameters);
  }

  post(statement: NamedStatement, parameters: readonly unknown[]): void {
    this.#open().post(statement, parameters);
  }

  /** A part of the step that goes on after another has failed it reaches nobody else's transaction. */
  end(): void {
    this.#connection = undefined;
  }

  #open(): Connection {
    if (this.#connection === undefined) throw new ParleyError('internal', 'The transaction is over.');
    return this.#connection;
  }
}

/**
 * How a step learns the time: from the row that it locks first, which is where most begin; else from a question of its
 * own, whose answer comes with the first other one; and waits for that when it needs the time before it asks anything.
 */
type Clock = 'by-lock' | 'asked' | 'awaited';

/** The step is run again, and asks. */
class ClockUnread extends Error {}

async function repeatOnConflict<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (tries < maxRepeats && isRepeatable(error)) continue;
      throw faultOf(error);
    }
  }
}

function isRepeatable(error: unknown): boolean {
  if (error instanceof ClockUnread || repeatable.has(codeOf(error))) return true;
  return codeOf(error) === '0A000' && error instanceof Error && error.message.startsWith('cached plan');
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

function faultOf(error: unknown): ParleyError {
  if (error instanceof ParleyError) return error;
  const code = codeOf(error);
  const message = error instanceof Error ? error.message : String(error);
  if (code === '53100')
    return new ParleyError('store_full', 'PostgreSQL has no disk space left.', {
      cause: error,
      retry: { kind: 'later' },
    });
  if (repeatable.has(code))
    return laterFault(`PostgreSQL has undone it each time, for others (${code}).`, error);
  if (isAway(code, message)) return awayFault(error);
  return new ParleyError('internal', `A store command failed: ${message}`, { cause: error });
}

function awayFault(error: unknown): ParleyError {
  const reason = codeOf(error) || (error instanceof Error ? error.message : String(error));
  return laterFault(`PostgreSQL is not reachable (${reason}). Start it, or correct DATABASE_URL.`, error);
}

function laterFault(message: string, cause: unknown): ParleyError {
  return new ParleyError('store_unavailable', message, { cause, retry: { kind: 'later' } });
}

/**
 * Faults of the environment, not of the statement: connections and resources, the server's end, a disk error, a
 * standby that takes no writes yet (25006, in a fail-over), and rights that were taken away (42501).
 */
function isAway(code: string, message: string): boolean {
  if (/^(08|57|58|53|28|3D)/.test(code) || code === '25006' || code === '42501') return true;
  return /^E[A-Z]+$/.test(code) || /timeout|terminated|Connection/i.test(message);
}
