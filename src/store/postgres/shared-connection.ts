import type { Connection } from './connection.ts';

/** Lends a connection of the pool to one user, and gives it back, or throws it away, behind them. */
export type Lender = <T>(use: (connection: Connection) => Promise<T>) => Promise<T>;

type BorrowedConnection = {
  readonly connection: Promise<Connection>;
  users: number;
  giveBack(): void;
};

/**
 * Lends one connection to all who want one at the same time, none of whom may begin a transaction. What they ask for
 * while a round trip is under way goes out with the next. A statement that fails fails those of others too, and those
 * who come then have another connection.
 */
export function sharing(lend: Lender): Lender {
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
