import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A door on loopback in front of a server, which the test can shut: what passed through is cut. */
export type CutProxy = {
  readonly port: number;
  shut(): void;
  open(): void;
  /** Who has passed through hears nothing more, and no end either; others pass as before. */
  silence(): void;
};

/** Shut means that a new connection ends at once and unanswered. */
export async function makeDoor(
  behind: { readonly host: string; readonly port: number },
  atEnd: (end: () => Promise<void>) => void,
): Promise<CutProxy> {
  const passing = new Set<Socket>();
  let isOpen = true;
  const door = createServer((outside) => {
    if (!isOpen) return outside.destroy();
    const inside = connect(behind.port, behind.host);
    for (const [one, other] of [
      [outside, inside],
      [inside, outside],
    ] as const) {
      passing.add(one);
      // The end of one side is the end of the other; why does not matter here.
      one.on('error', () => undefined);
      one.once('close', () => {
        passing.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
    return undefined;
  });
  door.listen(0, '127.0.0.1');
  await once(door, 'listening');
  const shut = () => {
    isOpen = false;
    for (const socket of passing) socket.destroy();
  };
  atEnd(async () => {
    shut();
    door.close();
    await once(door, 'close');
  });
  return {
    port: (door.address() as AddressInfo).port,
    shut,
    open: () => {
      isOpen = true;
    },
    silence: () => {
      for (const socket of passing) socket.unpipe().pause();
    },
  };
}
