import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { ParleyError } from '#contracts/errors.ts';
import type { StepTx, Store, StoreCommand, StoreSetup, Tx } from '../base/command.ts';
import type { Tables } from '../base/tables.ts';
import { migrate } from '../migrate.ts';

/** Deadlock and serialization failure: the transaction was undone and may simply be run again. */
const repeatable = new Set(['40P01', '40001']);
const maxRepeats = 5;

/**
 * Opens (and migrates) a PostgreSQL database. Each command is a transaction of its own from a pool.
 * Throws `store_unavailable` with the reason; the URL's password never appears in it.
 */
export async function openPostgresStore(
  options: { readonly url: string; readonly poolSize: number },
  { texts, chatCommands, migrations }: StoreSetup,
): Promise<Store> {
  const int8 = 20;
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.poolSize,
    // A process that stands still inside a transaction must not hold a lane's row beyond its lease.
    idle_in_transaction_session_timeout: 5_000,
    // Our integers are milliseconds and counters, far below 2^53.
    types: { getTypeParser: (oid, format) => (oid === int8 ? Number : pg.types.getTypeParser(oid, format)) },
  });
  // An idle connection that breaks is replaced by the pool; the next command says if that fails.
  pool.on('error', () => undefined);
  // One that breaks in a transaction, between two queries, fails the next query; untold, it would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined));
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  try {
    await migrate(db, migrations);
  } catch (error) {
    await db.destroy();
    const fault = faultOf(error instanceof ParleyError ? error.cause : error);
    throw fault.code === 'internal' ? error : fault;
  }

  const openTx = async (trx: Kysely<Tables>): Promise<StepTx> =>
    new PostgresTx(trx, await readClock(trx), { texts, chatCommands });
  const write = <Input, Output>(command: StoreCommand<Input, Output>, input: Input): Promise<Output> =>
    repeatOnConflict(() => db.transaction().execute(async (trx) => command.run(await openTx(trx), input)));

  return {
    broken: Promise.withResolvers<void>().promise,
    write,
    writeAlong: (command, input) => {
      // For freshness only: a lost image costs nothing.
      write(command, input).catch(() => undefined);
    },
    read: async (query, input) => {
      try {
        const now = query.usesClock ? await readClock(db) : Date.now();
        return await query.run({ db, now, dialect: 'postgres', advanceNow: undefined } satisfies Tx, input);
      } catch (error) {
        throw faultOf(error);
      }
    },
    close: () => db.destroy(),
  };
}

async function readClock(db: Kysely<Tables>): Promise<number> {
  const clock = await sql<{
    now: number;
  }>`select (extract(epoch from clock_timestamp()) * 1000)::bigint as now`.execute(db);
  return clock.rows[0]?.now ?? Date.now();
}

class PostgresTx implements StepTx {
  readonly db: Kysely<Tables>;
  readonly dialect = 'postgres';
  readonly texts: StepTx['texts'];
  readonly chatCommands: StepTx['chatCommands'];
  #now: number;

  constructor(
    db: Kysely<Tables>,
    now: number,
    { texts, chatCommands }: Pick<StoreSetup, 'texts' | 'chatCommands'>,
  ) {
    this.db = db;
    this.texts = texts;
    this.chatCommands = chatCommands;
    this.#now = now;
  }

  get now(): number {
    return this.#now;
  }

  advanceNow(now: number): void {
    this.#now = Math.max(this.#now, now);
  }
}

async function repeatOnConflict<T>(attempt: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt();
    } catch (error) {
      if (attempts < maxRepeats && repeatable.has(codeOf(error))) continue;
      throw faultOf(error);
    }
  }
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
  if (isAway(code, message)) {
    return new ParleyError(
      'store_unavailable',
      `PostgreSQL is not reachable (${code || message}). Start it, or correct DATABASE_URL.`,
      {
        cause: error,
        retry: { kind: 'later' },
      },
    );
  }
  return new ParleyError('internal', `A store command failed: ${message}`, { cause: error });
}

/**
 * Faults of the environment, not of the statement: connections and resources, the server's end, a disk error, a
 * standby that takes no writes yet (25006, in a fail-over), and rights that were taken away (42501).
 */
function isAway(code: string, message: string): boolean {
  if (/^(08|57|58|53|28|3D)/.test(code) || code === '25006' || code === '42501') return true;
  return /^E[A-Z]+$/.test(code) || /timeout|terminated|Connection/i.test(message);
}
