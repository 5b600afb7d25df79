import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { ConnectionLimits } from './connection-limits.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True for routes that take a file, which may take long as long as bytes keep coming. */
    readonly isUpload?: boolean;
  }
}

/**
 * Cuts a request whose body isn't complete after `requestMs`; a signed-in client's file only if no byte of it comes
 * for `uploadIdleMs`. Call it before adding the hook that checks access, because that hook may wait for the store.
 */
export function limitBodyTime(app: FastifyInstance, { requestMs, uploadIdleMs }: ConnectionLimits): void {
  const timers = new WeakMap<IncomingMessage, NodeJS.Timeout>();
  app.addHook('onRequest', async ({ raw }) => {
    if (!hasBody(raw)) return;
    const { socket } = raw;
    const cutIfOpen = () => {
      if (!raw.complete) socket.destroy();
    };
    const timer = setTimeout(cutIfOpen, requestMs).unref();
    timers.set(raw, timer);
    raw.once('end', () => clearTimeout(timer));
  });
  // A refused request never gets here.
  app.addHook('preParsing', async ({ raw, routeOptions }) => {
    if (routeOptions.config.isUpload !== true) return;
    const { socket } = raw;
    clearTimeout(timers.get(raw));
    socket.setTimeout(uploadIdleMs);
    raw.once('end', () => socket.setTimeout(0));
  });
}

function hasBody({ headers }: IncomingMessage): boolean {
  return (headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined;
}
