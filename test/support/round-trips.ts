import { Socket } from 'node:net';

/**
 * Counts how often this process writes to PostgreSQL while `act` runs. A step's pipelined statements share one write,
 * so this is the number of round trips. Nothing else in the process may write to a socket meanwhile.
 */
export async function countRoundTrips(act: () => Promise<unknown>): Promise<number> {
  const { prototype } = Socket;
  const { write } = prototype;
  let trips = 0;
  prototype.write = function (this: Socket, ...args: unknown[]) {
    trips += 1;
    return Reflect.apply(write, this, args);
  };
  try {
    await act();
    return trips;
  } finally {
    prototype.write = write;
  }
}
