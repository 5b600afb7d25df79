import type { Connection } from './connection.ts';

/** Lends a pooled connection to one user, and afterwards returns it to the pool or discards it. */
export type Lender = <T>(use: (connection: Connection) => Promise<T>) => Promise<T>;

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
