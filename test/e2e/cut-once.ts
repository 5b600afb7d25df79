import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { type Readable, Transform } from 'node:stream';

/** Where a connection is cut: once that much of the request, or of the answer, has passed. */
export type Cut =
  | { readonly after: 'request'; readonly bytes: number | 'all' | 'all but 5' }
  | { readonly after: 'answer'; readonly bytes: number };

/** A proxy on loopback that cuts its first connection; later ones pass. */
export async function cutOnce(
  url: string,
  cut: Cut,
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const target = new URL(url);
  const open = new Set<Socket>();
  let isFirst = true;
  const proxy = createServer((outside) => {
    const isCut = isFirst;
    isFirst = false;
    const inside = connect(Number(target.port), target.hostname);
    for (const [one, other] of [
      [outside, inside],
      [inside, outside],
    ] as const) {
      open.add(one);
      one.on('error', () => undefined);
      one.once('close', () => {
        open.delete(one);
        // Bytes passed on before the cut still arrive.
        other.end();
        other.destroySoon();
      });
    }
    const end = () => {
      outside.destroy();
      inside.destroySoon();
    };
    const renamed = new Transform({
      transform: (chunk: Buffer, _encoding, done) => done(null, renameHost(chunk, proxy, target.port)),
    });
    outside.pipe(renamed);
    if (!isCut) {
      renamed.pipe(inside);
      inside.pipe(outside);
    } else if (cut.after === 'answer') {
      renamed.pipe(inside);
      passUntil(inside, outside, { count: cut.bytes, end: () => outside.destroySoon() });
    } else if (cut.bytes === 0) end();
    else passRequest(renamed, inside, { bytes: cut.bytes, end });
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    port: (proxy.address() as AddressInfo).port,
    close: async () => {
      for (const socket of open) socket.destroy();
      proxy.close();
      await once(proxy, 'close');
    },
  };
}

/** Has the request name the gateway's address, the only one that it answers to. */
function renameHost(chunk: Buffer, proxy: Server, port: string): Buffer {
  const { port: own } = proxy.address() as AddressInfo;
  return Buffer.from(chunk.toString('latin1').replace(`127.0.0.1:${own}`, `127.0.0.1:${port}`), 'latin1');
}

type Limit = { readonly count: number; end(): void };

function passUntil(from: Socket, to: Socket, { count, end }: Limit): void {
  let left = count;
  from.on('data', (chunk: Buffer) => {
    const passed = chunk.subarray(0, left);
    left -= passed.length;
    to.write(passed, () => left === 0 && end());
  });
}

/** Collects the request, whose length its head states, and passes that much of it on. */
function passRequest(
  from: Readable,
  to: Socket,
  { bytes, end }: { readonly bytes: number | 'all' | 'all but 5'; end(): void },
): void {
  let request = Buffer.alloc(0);
  from.on('data', (chunk: Buffer) => {
    request = Buffer.concat([request, chunk]);
    const headEnd = request.indexOf('\r\n\r\n');
    if (headEnd < 0) return;
    const [, length = '0'] = /content-length: (\d+)/i.exec(request.subarray(0, headEnd).toString()) ?? [];
    const whole = headEnd + 4 + Number(length);
    if (request.length < whole) return;
    const passed = bytes === 'all' ? whole : bytes === 'all but 5' ? whole - 5 : bytes;
    // The gateway has it before the connection is gone.
    to.write(request.subarray(0, passed), () => setTimeout(end, 50));
  });
}
