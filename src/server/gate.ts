import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Log } from '#contracts/log.ts';
import type { AllowedOrigins } from './allowed-origins.ts';
import type { Identity, IdentityCheck } from './identity.ts';
import { type Access, judgeHead } from './request-guard.ts';
import { securityHeaders } from './security-headers.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call the route; a route without one takes only who is signed in. */
    readonly access?: Access;
    /** True for routes that may be upgraded to a WebSocket. */
    readonly isSocket?: boolean;
  }
  interface FastifyRequest {
    identity: Identity | undefined;
  }
}

export type GateDeps = {
  readonly log: Log;
  readonly identities: IdentityCheck;
  readonly cookieName: () => string;
  readonly origins: () => AllowedOrigins;
};

type Refusal = { readonly status: number; readonly code: string };

/** The choke point before every handler, unknown paths and WebSocket upgrades included. */
export function mountGate(app: FastifyInstance, deps: GateDeps): void {
  app.decorateRequest('identity', undefined);
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(securityHeaders);
    const refusal = refusalOf(app, request, deps);
    if (refusal !== undefined) return refuse(reply, refusal);
  });
  app.setNotFoundHandler((_request, reply) => refuse(reply, { status: 404, code: 'not_found' }));
  app.setErrorHandler((error, request, reply) => {
    const status = statusOf(error);
    if (status < 500) return refuse(reply, { status, code: 'invalid_request' });
    deps.log.error({ path: request.routeOptions.url, reason: String(error) }, 'http.failed');
    return refuse(reply, { status: 500, code: 'internal' });
  });
}

function refusalOf(app: FastifyInstance, request: FastifyRequest, deps: GateDeps): Refusal | undefined {
  const { access = 'signed-in', isSocket = false } = request.routeOptions.config;
  const isUpgrade = request.headers.upgrade !== undefined;
  const verdict = judgeHead(
    { method: request.method, headers: request.headers, access, isUpgrade },
    deps.origins(),
  );
  if (verdict.kind === 'refuse') return verdict;
  // An upgrade of any other route would be answered with an open socket before it is closed.
  if (isUpgrade && !isSocket) return { status: 404, code: 'not_found' };
  if (access === 'webhook' || (access === 'public' && !verdict.bearerOnly)) return undefined;
  request.identity = identify(app, request, deps);
  return identityRefusal(request.identity, verdict.bearerOnly);
}

function identify(app: FastifyInstance, request: FastifyRequest, deps: GateDeps): Identity {
  const { authorization, cookie } = request.headers;
  const identity = deps.identities.identify({
    authorization,
    cookie: cookie === undefined ? undefined : app.parseCookie(cookie)[deps.cookieName()],
    source: request.ip,
  });
  if (identity.kind === 'limited') deps.log.warn({ source: request.ip }, 'http.too_many_wrong_tokens');
  return identity;
}

function identityRefusal(identity: Identity, bearerOnly: boolean): Refusal | undefined {
  switch (identity.kind) {
    case 'bearer':
      return undefined;
    case 'session':
      return bearerOnly ? { status: 403, code: 'origin_missing' } : undefined;
    case 'limited':
      return { status: 429, code: 'too_many_tries' };
    case 'nobody':
      return { status: 401, code: 'sign_in_first' };
    default:
      return identity satisfies never;
  }
}

function refuse(reply: FastifyReply, refusal: Refusal): FastifyReply {
  if (refusal.status === 429) reply.header('retry-after', '60');
  return reply.code(refusal.status).send({ error: { code: refusal.code } });
}

function statusOf(error: unknown): number {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
  return typeof status === 'number' && status >= 400 && status < 600 ? status : 500;
}
