import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { serveCall } from './api-call.ts';
import type { AttemptLimiter } from './attempt-limiter.ts';
import { type IdentityCheck, signInIdOf } from './identity.ts';
import { type Readiness, readyAnswer } from './readiness.ts';
import { type Refusal, refuse } from './request-auth.ts';
import type { RedeemedCode, SignInCodes, SignIns } from './sign-ins.ts';

export type SignInDeps = {
  readonly cookieName: () => string;
  readonly codes: SignInCodes;
  readonly signIns: SignIns;
  readonly limiter: AttemptLimiter;
  readonly identities: IdentityCheck;
  /** The source that a wrong attempt counts against. */
  readonly sourceOf: (request: FastifyRequest) => string;
};

const linkQuery = z.object({ code: z.string().min(1).max(128) });

const signIn = {
  method: 'POST',
  path: '/api/sign-in',
  summary: 'Signs a browser in with the access token; the answer sets a cookie',
  access: 'public',
  input: z.object({ token: z.string().min(1).max(1024) }),
  refusals: ['wrong_token', 'too_many_tries'],
} as const;

const signOut = {
  method: 'POST',
  path: '/api/sign-out',
  summary: 'Ends the sign-in of the requesting browser',
  access: 'owner',
} as const;

/** Serves the one-time link, the token form and sign-out. The browser keeps only the cookie. */
export function mountSignIn(app: FastifyInstance, deps: SignInDeps): void {
  const { signIns } = deps;
  app.get('/signin', { config: { access: 'public', call: 'none' } }, async (request, reply) => {
    const query = linkQuery.safeParse(request.query);
    if (!query.success) return reply.redirect('/#link-not-valid', 303);
    // Link previews and scanners look at the head only; that must not use the link up.
    if (request.method === 'HEAD') return reply.send();
    const { code } = query.data;
    const found: { code?: RedeemedCode | undefined } = {};
    const attempt = await deps.limiter.attempt(deps.sourceOf(request), () => {
      found.code = deps.codes.redeem(code);
      return found.code !== undefined;
    });
    if (attempt.kind !== 'right') return reply.redirect('/#link-not-valid', 303);
    try {
      const by = found.code?.by;
      // A link is void once the sign-in that requested it has ended.
      const isGood = by === undefined || (await signIns.list()).some(({ id }) => id === by);
      if (!isGood) return reply.redirect('/#link-not-valid', 303);
      await openSession(request, reply, deps);
    } catch (error) {
      // An unreachable database doesn't use the link up.
      found.code?.giveBack();
      throw error;
    }
    return reply.redirect('/', 303);
  });

  serveCall(app, signIn, async ({ token }, { request, reply }) => {
    const attempt = await deps.identities.tryToken(token, deps.sourceOf(request));
    if (attempt.kind !== 'right') return refuse(reply, refusalOfAttempt(attempt));
    await openSession(request, reply, deps);
    return reply.code(204).send();
  });

  serveCall(app, signOut, async (_, { request, reply }) => {
    reply.clearCookie(deps.cookieName(), cookieOptions(request));
    const own = signInIdOf(request.identity);
    if (own !== undefined) await signIns.end({ id: own });
    return reply.code(204).send();
  });
}

/** Returns the refusal of a wrong token. */
function refusalOfAttempt(
  attempt: { readonly kind: 'wrong' } | { readonly kind: 'limited'; readonly retryAfterMs: number },
): Refusal {
  if (attempt.kind === 'wrong') return { status: 401, code: 'wrong_token' };
  return { status: 429, code: 'too_many_tries', retryAfterMs: attempt.retryAfterMs };
}

/** Restricts the cookie to TLS if the request used it. Only a trusted proxy is believed to have terminated TLS. */
function cookieOptions({ protocol }: FastifyRequest) {
  return { path: '/', httpOnly: true, sameSite: 'strict', secure: protocol === 'https' } as const;
}

async function openSession(request: FastifyRequest, reply: FastifyReply, deps: SignInDeps): Promise<void> {
  const { value, maxAgeS } = await deps.signIns.open(request.headers['user-agent']);
  reply.setCookie(deps.cookieName(), value, { ...cookieOptions(request), maxAge: maxAgeS });
}

const healthz = {
  method: 'GET',
  path: '/healthz',
  summary: 'Answers as long as the process is alive',
  access: 'public',
  answer: z.object({ status: z.literal('ok') }),
} as const;

const readyz = {
  method: 'GET',
  path: '/readyz',
  summary: 'Names what the gateway lacks, including channels; with 503 while it lacks something',
  access: 'public',
  input: z.object({ verbose: z.string().exactOptional().describe('Lists all components') }),
  answer: z.object({
    status: z.enum(['ready', 'not ready']),
    missing: z.array(z.string()).readonly().exactOptional(),
    components: z
      .array(
        z.object({
          name: z.string(),
          state: z.enum(['ok', 'down']),
          reason: z.string().exactOptional(),
          since: z.string().exactOptional(),
          nextTryAt: z.string().exactOptional(),
        }),
      )
      .readonly()
      .exactOptional(),
  }),
  alsoWith: [503],
} as const;

const figures = {
  method: 'GET',
  path: '/metrics',
  summary: 'Metrics for Prometheus',
  access: 'owner',
  scope: 'read',
  answer: z.string(),
  answerType: 'text/plain; version=0.0.4; charset=utf-8',
} as const;

/** Serves health and readiness to anybody, and metrics to the owner. */
export function mountStatus(
  app: FastifyInstance,
  deps: {
    readiness(): Promise<Readiness>;
    metrics?(): Promise<string>;
  },
): void {
  serveCall(app, healthz, async () => ({ status: 'ok' as const }));

  serveCall(app, readyz, async (_, { request, reply }) => {
    const { code, body } = readyAnswer(await deps.readiness(), request.url);
    return reply.code(code).send(body);
  });

  const { metrics } = deps;
  if (metrics === undefined) return;
  serveCall(app, figures, async (_, { reply }) =>
    reply.type(figures.answerType).send(await metrics.call(deps)),
  );
}
