import { type CompiledQuery, DefaultQueryExecutor, Kysely, PostgresDialect, type QueryResult } from 'kysely';
import type pg from 'pg';
import { ParleyError } from '#contracts/errors.ts';
import type { NamedStatement, RemoteStatements } from '../base/command.ts';
import { notShared } from '../base/prepared.ts';
import type { Tables } from '../base/tables.ts';
import { type Answer, type Owner, type PreparedStatements, RoundTrip } from './round-trip.ts';

/** How many transactions and reads a connection makes before it first discards its plans; doubles, up to the last. */
const firstPlans = 50;
const lastPlans = 10_000;

/**
 * One connection of the pool. Statements that are sent together share a round trip, and those sent while one is under
 * way share the next.
 *
 * Named statements are parsed once. PostgreSQL also keeps their plans, which it makes for the tables as they are at the
 * time: a plan for an empty table would scan a full one from end to end. Plans are therefore discarded each time the
 * number of transactions and reads has doubled, since a table hardly grows faster than that.
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

  /** `silenceMs`: a server that doesn't answer for this long counts as unreachable. */
  constructor(client: pg.PoolClient, silenceMs: number) {
    this.#client = client;
    this.#silenceMs = silenceMs;
  }

  /** Says whether a statement has failed, after which the connection may be in any state. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /** Kysely for reads, which need no transaction. */
  get db(): Kysely<Tables> {
    this.#db ??= kyselyOver(this);
    return this.#db;
  }

  /** Begins a transaction; `onClock` gets the database's time, ms since the epoch, before any later answer arrives. */
  begin(onClock: ((now: number) => void) | undefined): void {
    this.post(beginning, []);
    this.#count();
    const onAnswer = ({ rows: [row] }: Answer) => onClock?.(Number(row?.now));
    if (onClock) this.#gather().ask({ query: clock, parameters: [], onAnswer });
  }

  /** Begins a read, in which each statement sees the last commit. Others may read at the same time. */
  beginReading(): void {
    this.#count();
  }

  /** Commits. Throws the failure of a statement that nothing awaited; nothing was committed in that case. */
  async commit(): Promise<void> {
    const { done } = await this.ask(committing, []);
    if (this.#failure !== undefined) throw this.#failure;
    // PostgreSQL answers differently if a statement of the transaction has failed.
    if (done !== 'COMMIT') throw new ParleyError('internal', 'A failed statement was overlooked.');
  }

  rollback(): Promise<unknown> {
    return this.ask(rollingBack, []);
  }

  /** Reads the database's time, ms since the epoch. */
  async readClock(): Promise<number> {
    const { rows } = await this.ask(clock, []);
    return Number(rows[0]?.now);
  }

  ask(query: NamedStatement, parameters: readonly unknown[]): Promise<Answer> {
    return new Promise((onAnswer, onFailure) =>
      this.#gather().ask({ query, parameters, onAnswer, onFailure }),
    );
  }

  /** Sends the statement without awaiting it; its failure fails the transaction. */
  post(query: NamedStatement, parameters: readonly unknown[]): void {
    this.#gather().ask({ query, parameters });
  }

  /** Counts a transaction or read, and discards the plans when that is due. */
  #count(): void {
    this.#uses += 1;
    if (this.#uses < this.#plansUntil) return;
    this.#plansUntil = this.#uses + Math.min(this.#uses, lastPlans);
    this.post(discarding, []);
  }

  /** Returns the round trip that is sent once all statements requested without waiting have joined it. */
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

  /** After a failure PostgreSQL rejects every statement without the reason, so all of them get the first failure. */
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

/** Returns Kysely for one user of a connection, who begins and ends the transactions. */
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
    // The caller knows the type of the rows from the query that it built.
    return { rows: rows as Row[], ...(changed >= 0 && { numAffectedRows: BigInt(changed) }) };
  }
}
