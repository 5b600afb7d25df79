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

/** Codes of deadlocks and serialization failures: the transaction was rolled back and can simply be run again. */
const repeatable = new Set(['40P01', '40001']);
const maxRepeats = 5;

export type PostgresOptions = {
  readonly url: string;
  readonly poolSize: number;
  /** A server that is silent for this long counts as unreachable, ms. Default: 30 s. */
  readonly silenceMs?: number;
};

/**
 * Limits the wait for a connection whose other end has silently disappeared, which would otherwise last until TCP gives
 * up after a quarter of an hour. No statement takes this long: a stalled transaction ends after seconds, and so does
 * the wait for its rows.
 */
const longestSilenceMs = 30_000;

/**
 * Opens (and migrates) a PostgreSQL database. Each command runs in its own transaction on a pooled connection. Throws
 * `store_unavailable` with the reason, which never contains the URL's password.
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
  // With a single connection, overlapping shared reads would never leave it free for a write.
  const shared = options.poolSize > 1 ? sharing(withConnection) : withConnection;
  const readAmongOthers = async <Input, Output>(query: StoreQuery<Input, Output>, input: Input) => {
    try {
      return await readBy(shared, query, input);
    } catch (error) {
      // Another reader's statement may be the one that failed.
      if (error instanceof ParleyError && error.code !== 'internal') throw error;
      return readBy(withConnection, query, input);
    }
  };

  return {
    broken: Promise.withResolvers<void>().promise,
    write,
    writeAlong: (command, input) => {
      // For freshness only, so a lost image costs nothing.
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
      // A failed connection may be in any state, so the pool makes another.
      client.release(connection.hasFailed || !isSound);
    }
  };
}

async function migrateDatabase(
  { url, silenceMs = longestSilenceMs }: PostgresOptions,
  migrations: StoreSetup['migrations'],
): Promise<void> {
  // No query timeout, since changing a large table may take long.
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
    // A process that stalls inside a transaction must not hold a lane's row past its lease.
    idle_in_transaction_session_timeout: 5_000,
  });
  return withoutUncaughtErrors(pool);
}

/**
 * Gets a connection from the pool. Anything that prevents one counts as an unreachable server, not as a fault of the
 * command: a name that can't be resolved, a server that isn't trusted, a proxy with its own error messages.
 */
async function connectTo(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    const fault = faultOf(error);
    throw fault.code === 'internal' ? awayFault(error) : fault;
  }
}

/** Adds error listeners, without which a broken connection would end the process. */
function withoutUncaughtErrors(pool: pg.Pool): pg.Pool {
  // The pool replaces a connection that breaks while idle; if that fails, the next command reports it.
  pool.on('error', () => undefined);
  // If one breaks inside a transaction, between two queries, the next query fails.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

class PostgresTx implements StepTx, RemoteStatements {
  readonly dialect = 'postgres';
  readonly texts: StepTx['texts'];
  readonly chatCommands: StepTx['chatCommands'];
  readonly persist: StepTx['persist'];
  readonly remote: RemoteStatements = this;
  #db: Kysely<Tables> | undefined;
  #connection: Connection | undefined;
  #now: number | undefined;

  constructor(
    connection: Connection,
    { texts, chatCommands, persistHook }: Pick<StoreSetup, 'texts' | 'chatCommands' | 'persistHook'>,
  ) {
    this.#connection = connection;
    this.texts = texts;
    this.chatCommands = chatCommands;
    this.persist = persistHook?.();
  }

  /** Created on first use: most steps use prepared queries only and never need it. */
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

  /** Detaches the step: code of a failed step that is still running can't reach another transaction. */
  end(): void {
    this.#connection = undefined;
  }

  #open(): Connection {
    if (this.#connection === undefined) throw new ParleyError('internal', 'The transaction is over.');
    return this.#connection;
  }
}

/**
 * How a step learns the time. `by-lock`: from the first row that it locks, which is how most steps begin. `asked`: from
 * a separate query, whose answer arrives with the first other one. `awaited`: by awaiting that query first, if the step
 * needs the time before its first statement.
 */
type Clock = 'by-lock' | 'asked' | 'awaited';

/** Thrown if a step needs the time before it is known: the step is run again and queries it. */
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
  // A statement was prepared before a newer version added a column.
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
    return laterFault(`PostgreSQL rolled back every attempt, due to conflicts (${code}).`, error);
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
 * Says whether the environment is at fault, not the statement: connections and resources, a server shutdown, a disk
 * error, a standby that doesn't accept writes yet (25006, during a failover), or revoked permissions (42501).
 */
function isAway(code: string, message: string): boolean {
  if (/^(08|57|58|53|28|3D)/.test(code) || code === '25006' || code === '42501') return true;
  return /^E[A-Z]+$/.test(code) || /timeout|terminated|Connection/i.test(message);
}

/** Lends a pooled connection to one user, and afterwards returns it to the pool or discards it. */
type Lender = <T>(use: (connection: Connection) => Promise<T>) => Promise<T>;

type BorrowedConnection = {
  readonly connection: Promise<Connection>;
  users: number;
  giveBack(): void;
};

/**
 * Lends one connection to all concurrent users, none of whom may begin a transaction. Statements that they send while a
 * round trip is under way go out with the next one. A failed statement also fails the statements of the other users;
 * later users get another connection.
 */
function sharing(lend: Lender): Lender {
  let shared: BorrowedConnection | undefined;
  return async (use) => {
    shared ??= borrow(lend);
    const mine = shared;
    mine.users += 1;
    try {
      return await use(await mine.connection);
    } catch (error) {
      if (shared === mine) shared = undefined;
      throw error;
    } finally {
      mine.users -= 1;
      if (mine.users === 0) {
        if (shared === mine) shared = undefined;
        mine.giveBack();
      }
    }
  };
}

function borrow(lend: Lender): BorrowedConnection {
  const { promise: connection, resolve, reject } = Promise.withResolvers<Connection>();
  const { promise: ended, resolve: giveBack } = Promise.withResolvers<void>();
  lend(async (lent) => {
    resolve(lent);
    await ended;
  }).catch(reject);
  return { connection, users: 0, giveBack };
}
