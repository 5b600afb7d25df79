import type { Kysely } from 'kysely';
import type { Tables } from './tables.ts';

/** What a step of the protocol works with: one open transaction. */
export type Tx = {
  readonly db: Kysely<Tables>;
  /**
   * The database's clock when the transaction began or last locked a row, ms since the epoch. What
   * decides is decided by it.
   */
  readonly now: number;
  readonly dialect: 'sqlite' | 'postgres';
  /** Moves `now` on after a wait for a row; absent where nothing waits for rows. */
  readonly waitedUntil?: (now: number) => void;
};

/**
 * A named step. Input and output are plain data: on SQLite they cross to the writer thread. Each runs
 * whole or not at all, never spans a model, tool or network call, and may be repeated after a fault,
 * so its idempotency key stands in its comment.
 */
export type StoreCommand<Input, Output> = {
  readonly name: string;
  readonly run: (tx: Tx, input: Input) => Promise<Output>;
};

/** A question that changes nothing; answered from the last commit. */
export type StoreQuery<Input, Output> = {
  readonly query: string;
  /** True when `tx.now` decides: it is then the database's clock, which costs PostgreSQL a round trip. */
  readonly usesClock?: true;
  readonly run: (tx: Tx, input: Input) => Promise<Output>;
};

export interface Store {
  /** Runs the step in a transaction; resolves after its commit. */
  write<Input, Output>(command: StoreCommand<Input, Output>, input: Input): Promise<Output>;
  /**
   * Runs the step with the next commit that somebody else forces; for freshness only, so it may be
   * lost in a crash.
   */
  writeAlong<Input, Output>(command: StoreCommand<Input, Output>, input: Input): void;
  read<Input, Output>(query: StoreQuery<Input, Output>, input: Input): Promise<Output>;
  /** Resolves when it can never be used again in this process; a database that is only away does not count. */
  readonly broken: Promise<void>;
  /** Resolves when what was asked before has been committed. */
  close(): Promise<void>;
}
