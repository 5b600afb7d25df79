import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { signInIdOf } from './identity.ts';

/** The requests that signed-in browsers have under way. */
type OpenRequests = {
  /** Cuts those of a sign-in that has ended: who asks was decided when they began. */
  end(session: string): void;
};

/** One of them may be the sign-out itself, whose answer is to arrive. */
const graceMs = 400;

/** Watches the requests of each sign-in. Call it after the hook that checks access. */
export function watchRequests(app: FastifyInstance): OpenRequests {
  const open = new Map<IncomingMessage, string>();
  app.addHook('onRequest', async ({ identity, raw }, reply) => {
    const session = signInIdOf(identity);
    // A WebSocket is closed in its own way.
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
