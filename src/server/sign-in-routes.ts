import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import type { Attempt, AttemptLimiter } from './attempt-limiter.ts';
import type { IdentityCheck } from './identity.ts';
import type { SessionSeal } from './session-seal.ts';
import type { SignInCodes } from './sign-in-codes.ts';

export type SignInDeps = {
  readonly cookieName: () => string;
  readonly codes: SignInCodes;
  readonly seal: SessionSeal;
  readonly limiter: AttemptLimiter;
  readonly identities: IdentityCheck;
  readonly onSignOut: (session: string) => void;
};

const tokenForm = z.object({ token: z.string().min(1).max(1024) });
const linkQuery = z.object({ code: z.string().min(1).max(128) });

/** One-time link, token form, and sign-out. The cookie is the only thing that stays in the browser. */
export function mountSignIn(app: FastifyInstance, deps: SignInDeps): void {
  app.get('/signin', { config: { access: 'public' } }, async (request, reply) => {
    const query = linkQuery.safeParse(request.query);
    const attempt = query.success
      ? deps.limiter.attempt(request.ip, () => deps.codes.redeem(query.data.code))
      : ({ kind: 'wrong' } as const);
    if (attempt.kind === 'right') openSession(reply, deps);
    return reply.redirect(attempt.kind === 'right' ? '/' : '/#link-not-valid', 303);
  });

  app.post('/api/sign-in', { config: { access: 'public' } }, async (request, reply) => {
    const form = tokenForm.safeParse(request.body);
    if (!form.success) return reply.code(400).send({ error: { code: 'invalid_input' } });
    return answerAttempt(deps.identities.tryToken(form.data.token, request.ip), reply, deps);
  });

  app.post('/api/sign-out', { config: { access: 'signed-in' } }, async (request, reply) => {
    if (request.identity?.kind === 'session') {
      deps.seal.revoke(request.identity.id);
      deps.onSignOut(request.identity.id);
    }
    return reply.clearCookie(deps.cookieName(), cookieOptions).code(204).send();
  });
}

function answerAttempt(attempt: Attempt, reply: FastifyReply, deps: SignInDeps): FastifyReply {
  switch (attempt.kind) {
    case 'right':
      openSession(reply, deps);
      return reply.code(204).send();
    case 'wrong':
      return reply.code(401).send({ error: { code: 'wrong_token' } });
    case 'limited':
      return reply
        .code(429)
        .header('retry-after', '60')
        .send({ error: { code: 'too_many_tries' } });
    default:
      return attempt satisfies never;
  }
}

const cookieOptions = { path: '/', httpOnly: true, sameSite: 'strict' } as const;

function openSession(reply: FastifyReply, deps: SignInDeps): void {
  const { value, maxAgeS } = deps.seal.issue();
  reply.setCookie(deps.cookieName(), value, { ...cookieOptions, maxAge: maxAgeS });
}
