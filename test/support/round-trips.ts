import { Socket } from 'node:net';

/**
 * Counts how often this process has written to PostgreSQL while `act` runs, which is once for all that a step asks for
 * in one go: its round trips. Nothing else in the process may hold back what it writes to a socket meanwhile.
 */
export async function countRoundTrips(act: () => Promise<unknown>): Promise<number> {
  const { prototype } = Socket;
  const { uncork } = prototype;
  let trips = 0;
  prototype.uncork = function (this: Socket) {
    // A statement's own hold ends within that of its connection.
    if (this.writableCorked === 1 && this.writableLength > 0) trips += 1;
    uncork.call(this);
  };
  try {
    await act();
    return trips;
  } finally {
    prototype.uncork = uncork;
  }
}
