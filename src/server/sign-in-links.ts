import type { FastifyInstance } from 'fastify';
import { signInIdOf } from './identity.ts';

/** Fresh links that sign one browser in, once. */
export type SignInLinks = {
  readonly url: string;
  /** For a phone on the same network; absent where none can reach the page. */
  readonly phoneUrl?: string;
};

/** Issues links to who is signed in already, as the command line is by the token; `by`: the sign-in that asks. */
export function mountSignInLinks(app: FastifyInstance, issue: (by: string | undefined) => SignInLinks): void {
  app.post('/api/sign-in-links', { config: { access: 'signed-in' } }, async ({ identity }) =>
    issue(signInIdOf(identity)),
  );
}
