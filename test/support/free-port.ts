import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Returns a port that nobody listens on, below those that systems hand out on their own (from 32,768 on Linux): one of
 * these may be the end of somebody's connection by the time that a restarted process wants it back.
 */
export async function aFreePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
