import { DefaultQueryExecutor, Kysely, PostgresDialect, type QueryResult } from 'kysely';
import type pg from 'pg';
import { cleanText } from '#channel-kit/clean-text.ts';
import { ParleyError } from '#contracts/errors.ts';
import { notShared } from '../base/not-shared.ts';
import type { NamedQuery } from '../base/prepared.ts';
import type { Tables } from '../base/tables.ts';

/** Transactions after which a connection first plans its statements anew; doubled each time, up to the last. */
const firstPlans = 50;
const lastPlans = 10_000;

/**
 * One connection of the pool. It sends a statement as soon as it is asked for and reads the answers in the same
 * order: what doesn't depend on an answer shares its round trip, and everything that is asked for in one go leaves
 * in one write to the socket.
 *
 * Statements with a name are parsed once. PostgreSQL also keeps their plans, which it makes for the tables as they
 * are then: a plan for an empty table would read a full one from end to end. So plans are thrown away each time the
 * number of transactions has doubled, as a table hardly grows faster than that.
 */
export class Connection {
  readonly #client: pg.PoolClient;
  #isCorked = false;
  #failure: unknown;
  #transactions = 0;
  #plansUntil = firstPlans;

  constructor(client: pg.PoolClient) {
    this.#client = client;
  }

  /** Begins a transaction; `onClock`, if given, learns the database's time, ms since the epoch, before any later answer. */
  begin(onClock: ((now: number) => void) | undefined): void {
    this.#failure = undefined;
    this.#transactions += 1;
    if (this.#transactions >= this.#plansUntil) this.#renewPlans();
    this.post({ sql: 'begin', parameters: [] });
    if (onClock) this.#send(clock, (rows) => onClock(Number(rows[0]?.now)));
  }

  /** Throws what a statement that nobody waited for has failed with: nothing was committed then. */
  async commit(): Promise<void> {
    this.#cork();
    const { command } = await this.#client.query('commit');
    if (this.#failure !== undefined) throw this.#failure;
    // PostgreSQL's answer to the end of a transaction in which a statement has failed.
    if (command !== 'COMMIT') throw new ParleyError('internal', 'A failed statement was passed over.');
  }

  rollback(): Promise<unknown> {
    return this.execute({ sql: 'rollback', parameters: [] });
  }

  /** The database's time, ms since the epoch. */
  async readClock(): Promise<number> {
    const { rows } = await this.execute<{ now: number }>(clock);
    return Number(rows[0]?.now);
  }

  async execute<Row>(query: Statement): Promise<QueryResult<Row>> {
    this.#cork();
    try {
      const { rows, rowCount } = await this.#client.query(configOf(query));
      // The caller knows the type of the rows from the query it has built.
      return { rows: rows as Row[], ...(rowCount !== null && { numAffectedRows: BigInt(rowCount) }) };
    } catch (error) {
      // Behind a failure PostgreSQL refuses everything, which says nothing.
      this.#failure ??= error;
      throw this.#failure;
    }
  }

  /** Sends the statement; its failure is the transaction's. */
  post(query: Statement): void {
    this.#send(query, () => undefined);
  }

  #send(query: Statement, onRows: (rows: readonly { readonly now?: number }[]) => void): void {
    this.#cork();
    this.#client.query(configOf(query), (error: Error | null, result: pg.QueryResult<{ now?: number }>) => {
      if (error) this.#failure ??= error;
      else onRows(result.rows);
    });
  }

  #renewPlans(): void {
    this.#plansUntil = this.#transactions + Math.min(this.#transactions, lastPlans);
    this.post({ sql: 'discard plans', parameters: [] });
  }

  /** Until everything that follows without waiting has been asked for. */
  #cork(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    const { stream } = this.#client.connection;
    stream.cork();
    process.nextTick(() => {
      this.#isCorked = false;
      stream.uncork();
    });
  }
}

type Statement = Pick<NamedQuery, 'sql' | 'parameters' | 'statement'>;

const clock: Statement = {
  sql: 'select (extract(epoch from clock_timestamp()) * 1000)::bigint as now',
  parameters: [],
  statement: 'clock',
};

function configOf({ sql: text, parameters, statement }: Statement) {
  return { text, values: parameters.map(storable), ...(statement !== undefined && { name: statement }) };
}

/** PostgreSQL refuses U+0000 in a text. Nothing is stored with one, so what is looked up by one isn't found. */
function storable(value: unknown): unknown {
  return typeof value === 'string' && value.includes('\0') ? cleanText(value) : value;
}

/** Kysely for one user of a connection, who says himself where a transaction begins and ends. */
export function kyselyOver(execute: DefaultQueryExecutor['executeQuery']): Kysely<Tables> {
  const executor = new ConnectionExecutor(execute);
  return new Kysely<Tables>({ config: { dialect }, dialect, driver, executor });
}

const dialect = new PostgresDialect({ pool: () => Promise.reject(notShared()) });
const driver = dialect.createDriver();
const compiler = dialect.createQueryCompiler();
const adapter = dialect.createAdapter();

class ConnectionExecutor extends DefaultQueryExecutor {
  override readonly executeQuery: DefaultQueryExecutor['executeQuery'];

  constructor(execute: DefaultQueryExecutor['executeQuery']) {
    super(compiler, adapter, { provideConnection: () => Promise.reject(notShared()) });
    this.executeQuery = execute;
  }
}
