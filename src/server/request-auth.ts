import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { isStoreAway } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { TokenScope } from '#contracts/token-scope.ts';
import type { AllowedOrigins } from './allowed-origins.ts';
import type { Identity, IdentityCheck } from './identity.ts';
import { openAiError, speaksOpenAi } from './openai-error.ts';
import { asksForSocket, judgeHead, type RouteAccess, securityHeaders } from './request-guard.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call the route. Default: the owner. */
    readonly access?: RouteAccess;
    /** The scope with which a token may call the route, or several of which one is enough. Default: no token may. */
    readonly scope?: TokenScope | readonly TokenScope[];
    /** True for routes that may be upgraded to a WebSocket. */
    readonly isSocket?: boolean;
  }
  interface FastifyRequest {
    identity: Identity | undefined;
  }
}

export type RequestAuthDeps = {
  readonly log: Log;
  readonly identities: IdentityCheck;
  readonly cookieName: () => string;
  readonly origins: () => AllowedOrigins;
  /** The source that a wrong token counts against. */
  readonly sourceOf: (request: FastifyRequest) => string;
};

export type Refusal = {
  readonly status: number;
  readonly code: string;
  readonly retryAfterMs?: number;
  /** For people; by default the code's own sentence, if it has one. */
  readonly text?: string;
};

/**
 * Adds the choke point before every handler, including unknown paths and WebSocket upgrades. Returns what identifies the
 * caller of an open request again.
 */
export function mountRequestAuth(
  app: FastifyInstance,
  deps: RequestAuthDeps,
): (request: FastifyRequest) => Promise<Identity> {
  app.decorateRequest('identity', undefined);
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(securityHeaders);
    const refusal = await refusalOf(app, request, deps);
    return refusal && refuseReadably(reply, refusal);
  });
  app.setNotFoundHandler((_request, reply) => refuse(reply, { status: 404, code: 'not_found' }));
  app.setErrorHandler((error, request, reply) => {
    if (isStoreAway(error)) {
      deps.log.warn({ path: request.routeOptions.url, reason: String(error) }, 'http.store-lost');
      return refuse(reply, storeAway);
    }
    const status = statusOf(error);
    // A program reads no answer before it has sent everything, so what is too large is read, and dropped.
    if (status === 413 && takesFiles(request)) reply.removeHeader('connection');
    if (status < 500) return refuse(reply, { status, code: 'invalid_request' });
    deps.log.error({ path: request.routeOptions.url, reason: String(error) }, 'http.failed');
    return refuse(reply, { status: 500, code: 'internal' });
  });
  return (request) => identify(app, request, deps);
}

function takesFiles({ url, routeOptions: { config } }: FastifyRequest): boolean {
  return speaksOpenAi(url) || (config.isUpload === true && config.call !== 'none');
}

async function refusalOf(
  app: FastifyInstance,
  request: FastifyRequest,
  deps: RequestAuthDeps,
): Promise<Refusal | undefined> {
  const { access = 'owner', scope, isSocket = false } = request.routeOptions.config;
  const verdict = judgeHead({ method: request.method, headers: request.headers, access }, deps.origins());
  if (verdict.kind === 'refuse')
    return verdict.code === 'host_not_allowed'
      ? { ...verdict, text: wordsForHost(request.headers.host) }
      : verdict;
  // On any other route an upgrade would open a socket before it is refused.
  if (asksForSocket(request.headers) && !isSocket) return { status: 404, code: 'not_found' };
  if (access === 'webhook' || (access === 'public' && !verdict.bearerOnly)) return undefined;
  request.identity = await identify(app, request, deps);
  return identityRefusal(request.identity, { access, scope, bearerOnly: verdict.bearerOnly });
}

/** Returns the text for a Host that isn't allowed. The name is untrusted, so only a well-formed one is repeated. */
function wordsForHost(host = ''): string {
  const isUsual = /^[a-z0-9.[\]:-]{1,253}$/i.test(host);
  const asked = isUsual ? `the name "${host}"` : 'this name';
  const shown = isUsual ? host.toLowerCase() : 'parley.example';
  return `Parley doesn't answer to ${asked}. If it's yours, add it to "allowedHosts" in parley.config.json, for example "allowedHosts": ["${shown}"], and run: ${parleyCommand} reload`;
}

function identify(app: FastifyInstance, request: FastifyRequest, deps: RequestAuthDeps): Promise<Identity> {
  const { authorization, cookie } = request.headers;
  return deps.identities.identify({
    authorization,
    cookie: cookie === undefined ? undefined : app.parseCookie(cookie)[deps.cookieName()],
    source: deps.sourceOf(request),
  });
}

type RouteRule = {
  readonly access: RouteAccess;
  readonly scope: TokenScope | readonly TokenScope[] | undefined;
  /** A browser's cookie doesn't count. */
  readonly bearerOnly: boolean;
};

function identityRefusal(identity: Identity, { access, scope, bearerOnly }: RouteRule): Refusal | undefined {
  switch (identity.kind) {
    case 'bearer':
      return undefined;
    case 'token': {
      // One text for every route, whether it exists or not.
      const text = `The token “${identity.token.name}” may not do this. Its scopes: ${identity.token.scopes.join(', ')}.`;
      const isEnough = [scope].flat().some((one) => one !== undefined && identity.token.scopes.includes(one));
      return isEnough ? undefined : { status: 403, code: 'scope_missing', text };
    }
    case 'session':
      if (access === 'operator' || access === 'program') return { status: 403, code: 'token_required' };
      return bearerOnly ? { status: 403, code: 'origin_missing' } : undefined;
    case 'wrong':
      return { status: 401, code: 'wrong_token' };
    case 'limited':
      return { status: 429, code: 'too_many_tries', retryAfterMs: identity.retryAfterMs };
    case 'nobody':
      return { status: 401, code: 'sign_in_first' };
    case 'unknown':
      return storeAway;
    default:
      return identity satisfies never;
  }
}

/** Address of the feed. */
export const feedPath = '/api/feed';

/** The store recovers on its own, so clients may retry. */
export const storeAway: Refusal = { status: 503, code: 'store_unavailable', retryAfterMs: 5_000 };

/** Texts for people; programs read the code. */
const texts: Readonly<Partial<Record<string, string>>> = {
  invalid_request: 'The request isn’t valid. /openapi.json describes valid ones.',
  token_required: 'Only the command line, or a program with the access token, may do this.',
  store_unavailable:
    "Parley can't use its database right now. It keeps trying; please ask again in a moment.",
};

/** A person who opened the address gets text; programs get the code. */
export function refuseReadably(reply: FastifyReply, refusal: Refusal): FastifyReply {
  const isPerson = reply.request.headers.accept?.includes('text/html') === true;
  if (refusal.text === undefined || !isPerson) return refuse(reply, refusal);
  return reply.code(refusal.status).type('text/plain; charset=utf-8').send(`${refusal.text}\n`);
}

export function refuse(
  reply: FastifyReply,
  { status, code, retryAfterMs, text = texts[code] }: Refusal,
): FastifyReply {
  if (status === 503 && isEventSource(reply.request))
    return reply.type('text/event-stream; charset=utf-8').send(`retry: ${retryAfterMs ?? 5_000}\n\n`);
  if (retryAfterMs !== undefined) reply.header('retry-after', String(Math.ceil(retryAfterMs / 1000)));
  if (speaksOpenAi(reply.request.url)) return reply.code(status).send(openAiError({ status, code, text }));
  return reply.code(status).send({ error: { code, ...(text !== undefined && { text }) } });
}

/** An EventSource gives up for good on an error, but comes back after a stream that ends. */
function isEventSource({ url, headers }: FastifyRequest): boolean {
  return url.split('?')[0] === feedPath && headers.accept?.includes('text/event-stream') === true;
}

function statusOf(error: unknown): number {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
  return typeof status === 'number' && status >= 400 && status < 600 ? status : 500;
}
