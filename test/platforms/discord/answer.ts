import type { IncomingMessage } from 'node:http';
import { type Body, readBody } from './body.ts';
import { ApiError, refuse } from './errors.ts';
import type { Fault, Faults } from './faults.ts';
import type { Platform } from './platform.ts';
import type { RateLimiter, Verdict } from './rates.ts';
import { type Match, matchRoute } from './rest.ts';
import type { Call, Refusal } from './types.ts';

export type Reply = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

type AnswerDeps = {
  readonly platform: Platform;
  readonly faults: Faults;
  readonly limiter: RateLimiter;
  readonly isToken: (token: string) => boolean;
  readonly record: (call: Call) => void;
  readonly refuse: (refusal: Refusal) => void;
};

type Outcome = {
  readonly call: Call;
  readonly fault: Fault | undefined;
  /** Undefined if no answer is sent. */
  readonly reply: Reply | undefined;
};

const json = { 'content-type': 'application/json' };

/** Puts a call into the journal, applies it or its fault, and returns what goes back over the wire. */
export function answerCall(deps: AnswerDeps, request: IncomingMessage, url: URL, raw: Buffer): Outcome {
  const method = request.method ?? 'GET';
  const path = url.pathname.replace(/^\/api\/v10/, '');
  const match: Match | ApiError =
    path === url.pathname ? new ApiError(400, 50041, 'Invalid API version') : matchRoute(method, path);
  const body = attempt(() => readBody(request.headers['content-type'] ?? '', raw));
  const call = newCall(deps, { method, path, url, match, body });
  deps.record(call);
  const fault = deps.faults.take(call);
  const asked = fault === undefined ? undefined : faultReply(fault);
  if (fault !== undefined) call.isFault = true;
  if (asked !== undefined || fault?.kind === 'cut' || (fault?.kind === 'hang' && !fault.isApplied)) {
    call.status = asked?.status ?? 0;
    return { call, fault, reply: asked };
  }
  const reply = apply(deps, { request, url, match, body, call });
  call.status = reply.status;
  if (fault?.kind === 'hang') return { call, fault, reply: undefined };
  if (fault?.kind === 'lose-answer') return { call, fault, reply: page(502) };
  return { call, fault, reply };
}

type Read = { readonly match: Match | ApiError; readonly body: Body | ApiError };

function newCall(
  { platform }: AnswerDeps,
  { method, path, url, match, body }: Read & { method: string; path: string; url: URL },
): Call {
  const read = body instanceof ApiError ? { values: {}, list: [], files: [] } : body;
  return {
    method,
    route: match instanceof ApiError ? '' : match.route,
    path,
    query: Object.fromEntries(url.searchParams),
    body: read.list.length > 0 ? { list: read.list } : read.values,
    files: read.files.map(({ name, bytes }) => ({ name, sizeBytes: bytes.length })),
    at: platform.now(),
    status: 0,
    answered: false,
  };
}

type Arrived = Read & { readonly request: IncomingMessage; readonly url: URL; readonly call: Call };

function apply(deps: AnswerDeps, arrived: Arrived): Reply {
  const { match, body, call, url, request } = arrived;
  let verdict: Verdict | undefined;
  try {
    if ((request.headers['user-agent'] ?? '') === '') throw refuse('noUserAgent');
    if (match instanceof ApiError) throw match;
    authorize(deps, match, request.headers.authorization);
    verdict = deps.limiter.take(match.route, match.major, match.isInteraction);
    if (verdict.limited !== undefined) return tooMany(call, verdict.limited, verdict.headers);
    if (body instanceof ApiError) throw body;
    const { handler, ids } = match;
    const { values, list, files } = body;
    const { platform } = deps;
    const answer = handler({ platform, ids, query: url.searchParams, body: values, list, files, call });
    const { headers } = verdict;
    if (answer.body === undefined) return { status: answer.status, headers, body: '' };
    return {
      status: answer.status,
      headers: { ...json, ...headers },
      body: JSON.stringify(answer.body),
    };
  } catch (error) {
    return refused(deps, call, error, verdict);
  }
}

function authorize(deps: AnswerDeps, match: Match, header: string | undefined): void {
  if (match.isInteraction || match.route === 'GET /gateway') return;
  if (!header?.startsWith('Bot ') || !deps.isToken(header.slice(4))) throw refuse('unauthorized');
}

function refused(deps: AnswerDeps, call: Call, error: unknown, verdict: Verdict | undefined): Reply {
  if (!(error instanceof ApiError)) {
    // A fault of this server must not look like the platform's, so it names itself and fails the test.
    const why = `test server fault: ${String(error instanceof Error ? error.stack : error)}`;
    call.reason = why;
    deps.refuse({ what: `${call.method} ${call.path}`, status: 500, code: 0, reason: why });
    return { status: 500, headers: json, body: JSON.stringify({ message: why, code: 0 }) };
  }
  const { status, code, message, errors } = error;
  call.code = code;
  call.reason = errors === undefined ? message : `${message} ${JSON.stringify(errors)}`;
  deps.refuse({ what: `${call.method} ${call.path}`, status, code, reason: call.reason });
  const body = JSON.stringify({ message, code, ...(errors === undefined ? {} : { errors }) });
  return { status, headers: { ...json, ...verdict?.headers }, body };
}

function faultReply(fault: Fault): Reply | undefined {
  if (fault.kind === 'page') return page(fault.status);
  if (fault.kind === 'rate-limit')
    return limited({ retryAfterMs: fault.retryAfterMs, isGlobal: fault.isGlobal ?? false });
  if (fault.kind === 'answer')
    return { status: fault.status, headers: { ...json, ...fault.headers }, body: JSON.stringify(fault.body) };
  if (fault.kind !== 'refuse') return undefined;
  const { status, code, message } = fault;
  return { status, headers: json, body: JSON.stringify({ message, code }) };
}

type Limit = { readonly retryAfterMs: number; readonly isGlobal: boolean };

function tooMany(call: Call, limit: Limit, headers: Readonly<Record<string, string>>): Reply {
  call.reason = 'rate limited';
  const reply = limited(limit);
  return { ...reply, headers: { ...headers, ...reply.headers } };
}

function limited({ retryAfterMs, isGlobal }: Limit): Reply {
  const seconds = retryAfterMs / 1000;
  const body = { message: 'You are being rate limited.', retry_after: seconds, global: isGlobal };
  return {
    status: 429,
    headers: {
      ...json,
      'retry-after': String(Math.ceil(seconds)),
      'x-ratelimit-scope': isGlobal ? 'global' : 'user',
      ...(isGlobal ? { 'x-ratelimit-global': 'true' } : {}),
      via: '1.1 google',
    },
    body: JSON.stringify(body),
  };
}

function page(status: number): Reply {
  const body = `<html><head><title>${status}</title></head><body>cloudflare</body></html>`;
  return { status, headers: { 'content-type': 'text/html' }, body };
}

function attempt<T>(read: () => T): T | ApiError {
  try {
    return read();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}
