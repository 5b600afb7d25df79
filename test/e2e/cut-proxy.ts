import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A proxy on loopback in front of a server. The test can shut it, which cuts the connections through it. */
export type CutProxy = {
  readonly port: number;
  shut(): void;
  open(): void;
  /** Open connections receive nothing more, not even an end; new ones pass as before. */
  silence(): void;
};

/** While shut, a new connection ends immediately and without an answer. */
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
      // The end of one side ends the other; the reason doesn't matter here.
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
