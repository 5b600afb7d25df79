import { type CompiledQuery, DefaultQueryExecutor, Kysely, PostgresDialect, type QueryResult } from 'kysely';
import type pg from 'pg';
import { ParleyError } from '#contracts/errors.ts';
import type { NamedStatement, RemoteStatements } from '../base/command.ts';
import { notShared } from '../base/not-shared.ts';
import type { Tables } from '../base/tables.ts';
import { type Answer, type Owner, type PreparedStatements, RoundTrip } from './round-trip.ts';

/** Transactions and reads after which a connection first plans its statements anew; doubled each time, up to the last. */
const firstPlans = 50;
const lastPlans = 10_000;

/**
 * One connection of the pool. All that is asked for in one go shares a round trip, and what is asked for while one is
 * under way has the next.
 *
 * Statements with a name are parsed once. PostgreSQL also keeps their plans, which it makes for the tables as they
 * are then: a plan for an empty table would read a full one from end to end. So plans are thrown away each time the
 * number of transactions and reads has doubled, as a table hardly grows faster than that.
 */
export class Connection implements RemoteStatements, Owner {
  readonly #client: pg.PoolClient;
  readonly #silenceMs: number;
  readonly #prepared: PreparedStatements = new Map();
  #gathering: RoundTrip | undefined;
  #db: Kysely<Tables> | undefined;
  #underWay: NodeJS.Timeout | undefined;
  #failure: unknown;
  #uses = 0;
  #plansUntil = firstPlans;

  /** `silenceMs`: a server that doesn't answer for so long is away. */
  constructor(client: pg.PoolClient, silenceMs: number) {
    this.#client = client;
    this.#silenceMs = silenceMs;
  }

  /** Whether a statement has failed: the connection may then be in any state. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /** For reads, which need no transaction. */
  get db(): Kysely<Tables> {
    this.#db ??= kyselyOver(this);
    return this.#db;
  }

  /** Begins a transaction; `onClock`, if given, learns the database's time, ms since the epoch, before any later answer. */
  begin(onClock: ((now: number) => void) | undefined): void {
    this.post(beginning, []);
    this.#count();
    const onAnswer = ({ rows: [row] }: Answer) => onClock?.(Number(row?.now));
    if (onClock) this.#gather().ask({ query: clock, parameters: [], onAnswer });
  }

  /** Begins a read, whose statements each see the last commit. Others may read at the same time. */
  beginReading(): void {
    this.#count();
  }

  /** Throws what a statement that nobody waited for has failed with: nothing was committed then. */
  async commit(): Promise<void> {
    const { done } = await this.ask(committing, []);
    if (this.#failure !== undefined) throw this.#failure;
    // PostgreSQL's answer to the end of a transaction in which a statement has failed.
    if (done !== 'COMMIT') throw new ParleyError('internal', 'A failed statement was passed over.');
  }

  rollback(): Promise<unknown> {
    return this.ask(rollingBack, []);
  }

  /** The database's time, ms since the epoch. */
  async readClock(): Promise<number> {
    const { rows } = await this.ask(clock, []);
    return Number(rows[0]?.now);
  }

  ask(query: NamedStatement, parameters: readonly unknown[]): Promise<Answer> {
    return new Promise((onAnswer, onFailure) =>
      this.#gather().ask({ query, parameters, onAnswer, onFailure }),
    );
  }

  /** Asks for the statement; its failure is the transaction's. */
  post(query: NamedStatement, parameters: readonly unknown[]): void {
    this.#gather().ask({ query, parameters });
  }

  /** Counts a transaction or a read. */
  #count(): void {
    this.#uses += 1;
    if (this.#uses < this.#plansUntil) return;
    this.#plansUntil = this.#uses + Math.min(this.#uses, lastPlans);
    this.post(discarding, []);
  }

  /** The round trip that leaves when everything that follows without waiting has been asked for. */
  #gather(): RoundTrip {
    if (!this.#gathering) {
      this.#gathering = new RoundTrip(this.#prepared, this);
      process.nextTick(() => this.#send());
    }
    return this.#gathering;
  }

  #send(): void {
    if (this.#underWay || !this.#gathering) return;
    this.#underWay = setTimeout(() => this.#client.connection.stream.destroy(), this.#silenceMs);
    this.#client.query(this.#gathering);
    this.#gathering = undefined;
  }

  /** Behind a failure PostgreSQL refuses everything, which says nothing: all are told the first. */
  onFailure(error: unknown): unknown {
    this.#failure ??= error;
    return this.#failure;
  }

  onEnd(): void {
    clearTimeout(this.#underWay);
    this.#underWay = undefined;
    if (this.#gathering) process.nextTick(() => this.#send());
  }
}

const beginning: NamedStatement = { sql: 'begin', statement: 'begin' };
const committing: NamedStatement = { sql: 'commit', statement: 'commit' };
const rollingBack: NamedStatement = { sql: 'rollback', statement: 'rollback' };
const discarding: NamedStatement = { sql: 'discard plans' };
const clock: NamedStatement = {
  sql: 'select (extract(epoch from clock_timestamp()) * 1000)::bigint as now',
  statement: 'clock',
};

/** Kysely for one user of a connection, who says himself where a transaction begins and ends. */
export function kyselyOver(remote: Pick<RemoteStatements, 'ask'>): Kysely<Tables> {
  return new Kysely<Tables>({ config: { dialect }, dialect, driver, executor: new RemoteExecutor(remote) });
}

const dialect = new PostgresDialect({ pool: () => Promise.reject(notShared()) });
const driver = dialect.createDriver();
const compiler = dialect.createQueryCompiler();
const adapter = dialect.createAdapter();

class RemoteExecutor extends DefaultQueryExecutor {
  readonly #remote: Pick<RemoteStatements, 'ask'>;

  constructor(remote: Pick<RemoteStatements, 'ask'>) {
    super(compiler, adapter, { provideConnection: () => Promise.reject(notShared()) });
    this.#remote = remote;
  }

  override async executeQuery<Row>(query: CompiledQuery<unknown>): Promise<QueryResult<Row>> {
    const { rows, changed } = await this.#remote.ask(query, query.parameters);
    // Its caller knows the type of the rows from the query it has built.
    return { rows: rows as Row[], ...(changed >= 0 && { numAffectedRows: BigInt(changed) }) };
  }
}
