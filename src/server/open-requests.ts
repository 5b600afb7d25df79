import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { signInIdOf } from './identity.ts';

/** The pending requests of signed-in browsers and of tokens. */
type OpenRequests = {
  /** Cuts the requests of a sign-in or token that has ended, since they were authorized when they started. */
  end(id: string): void;
};

/** One of them may be the sign-out itself, whose answer should still arrive. */
const cutGraceMs = 400;

/** Tracks the requests of each sign-in and token. Call it after adding the hook that checks access. */
export function watchRequests(app: FastifyInstance): OpenRequests {
  const open = new Map<IncomingMessage, string>();
  app.addHook('onRequest', async ({ identity, raw }, reply) => {
    const id = identity?.kind === 'token' ? identity.token.id : signInIdOf(identity);
    // WebSockets are closed by `closeSockets`.
    if (id === undefined || raw.headers.upgrade !== undefined) return;
    open.set(raw, id);
    reply.raw.once('close', () => open.delete(raw));
  });
  return {
    end: (id) => {
      const cut = () => {
        for (const [{ socket }, its] of open) if (its === id) socket.destroy();
      };
      setTimeout(cut, cutGraceMs).unref();
    },
  };
}
