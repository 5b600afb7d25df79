import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { signInIdOf } from './identity.ts';

/** The pending requests of signed-in browsers. */
type OpenRequests = {
  /** Cuts the requests of a sign-in that has ended, since they were authorised when they started. */
  end(session: string): void;
};

/** One of them may be the sign-out itself, whose answer should still arrive. */
const graceMs = 400;

/** Tracks the requests of each sign-in. Call it after adding the hook that checks access. */
export function watchRequests(app: FastifyInstance): OpenRequests {
  const open = new Map<IncomingMessage, string>();
  app.addHook('onRequest', async ({ identity, raw }, reply) => {
    const session = signInIdOf(identity);
    // WebSockets are closed by `closeSockets`.
    if (session === undefined || raw.headers.upgrade !== undefined) return;
    open.set(raw, session);
    reply.raw.once('close', () => open.delete(raw));
  });
  return {
    end: (session) => {
      const cut = () => {
        for (const [{ socket }, its] of open) if (its === session) socket.destroy();
      };
      setTimeout(cut, graceMs).unref();
    },
  };
}
