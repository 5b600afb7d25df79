import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { serveCall } from './api-call.ts';
import { signInIdOf } from './identity.ts';

/** New links that sign one browser in, once. */
export type SignInLinks = {
  readonly url: string;
  /** For a phone on the same network; absent when none can reach the page. */
  readonly phoneUrl?: string;
};

const issuing = {
  method: 'POST',
  path: '/api/sign-in-links',
  summary: 'Creates a link that signs one browser in, once, within 15 minutes',
  answer: z.object({ url: z.string(), phoneUrl: z.string().exactOptional() }),
} as const;

/** Issues links to signed-in clients, such as the command line with its token. `by`: the sign-in that requests one. */
export function mountSignInLinks(app: FastifyInstance, issue: (by: string | undefined) => SignInLinks): void {
  serveCall(app, issuing, async (_, { request }) => issue(signInIdOf(request.identity)));
}
