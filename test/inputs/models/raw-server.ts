/** A server that answers each request with the bytes that it was given, whatever was asked. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** `body`: pieces are sent one by one; at a promise, the answer waits for it. */
export type RawAnswer = {
  readonly type?: string;
  readonly body: string | readonly (string | Promise<unknown>)[];
};

export type RawServer = {
  readonly url: string;
  answer(next: RawAnswer): void;
  close(): Promise<void>;
};

export async function startRawServer(): Promise<RawServer> {
  let next: RawAnswer = { body: '' };
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', async () => {
      response.writeHead(200, { 'content-type': next.type ?? 'text/event-stream' });
      const pieces = typeof next.body === 'string' ? [next.body] : next.body;
      for (const piece of pieces)
        if (typeof piece === 'string') await new Promise((resolve) => response.write(piece, resolve));
        else await piece;
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    answer: (given) => {
      next = given;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
