/**
 * `/healthz`, `/readyz` and `/metrics` of a process without a page, on its own loopback port. It uses Node's
 * HTTP server, since a worker has no other use for the page's. The page's rules apply: only its own names as
 * Host, no foreign Origin, and `/metrics` only with the access token.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import { createServer } from '../http/node-http.ts';
import { allowedOrigins } from './allowed-origins.ts';
import { createAttemptLimiter, type Lockouts } from './attempt-limiter.ts';
import { connectionLimits, limitConnections, serverOptionsOf } from './connection-limits.ts';
import { isSameSecret } from './identity.ts';
import { type Readiness, readyAnswer } from './readiness.ts';
import { judgeHead, securityHeaders, sourceOf } from './request-guard.ts';

export type HealthServerDeps = {
  /** Port to listen on; with 0, or if another program uses it, a free one is taken. */
  readonly port: number;
  readonly log: Log;
  readonly clock: Clock;
  readiness(): Promise<Readiness>;
  metrics(): Promise<string>;
  /** The access token of the data folder; read when a client sends one. */
  token(): Promise<string>;
};

export interface HealthServer {
  /** Starts to answer. Throws ParleyError `internal` when this machine has no port left. */
  listen(): Promise<{ readonly url: string }>;
  close(): Promise<void>;
}

const loopback = '127.0.0.1';
/** Only one or two monitors connect here. */
const limits = { ...connectionLimits, perSource: 64, inTotal: 64 };
/** Only this machine connects, and only for metrics, so lockouts needn't outlive the process. */
const noLockouts: Lockouts = { find: async () => undefined, record: async () => undefined };

/** Creates the server of a worker's `/healthz`, `/readyz` and `/metrics`; it doesn't listen yet. */
export function createHealthServer(deps: HealthServerDeps): HealthServer {
  const answer = createAnswers(deps);
  const server = createServer(serverOptionsOf(limits), (request, response) => {
    void answer(request, portOf(server))
      .catch((error: unknown) => {
        deps.log.error({ reason: String(error) }, 'http.failed');
        return json(500, { error: { code: 'internal' } });
      })
      .then((answered) => send(request, response, answered));
  });
  limitConnections(server, { limits });
  return {
    listen: async () => {
      await listenSomewhere(server, deps);
      return { url: `http://${loopback}:${portOf(server)}` };
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

type Answer = { readonly code: number; readonly type: string; readonly body: string };

function createAnswers({ clock, readiness, metrics, token }: HealthServerDeps) {
  const limiter = createAttemptLimiter({ clock, lockouts: noLockouts });
  const mayReadMetrics = async (request: IncomingMessage): Promise<Answer | undefined> => {
    const sent = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
    if (sent === undefined) return json(401, { error: { code: 'sign_in_first' } });
    const right = await token();
    const source = sourceOf(request.socket.remoteAddress ?? '');
    const { kind } = await limiter.attempt(source, () => isSameSecret(sent, right));
    if (kind === 'right') return undefined;
    return kind === 'limited'
      ? json(429, { error: { code: 'too_many_tries' } })
      : json(401, { error: { code: 'sign_in_first' } });
  };
  return async (request: IncomingMessage, port: number): Promise<Answer> => {
    const { method = 'GET', headers } = request;
    const path = (request.url ?? '').split('?')[0];
    const access = path === '/metrics' ? 'owner' : 'public';
    const origins = allowedOrigins({ port, configured: [], own: () => [] });
    const verdict = judgeHead({ method, headers, access }, origins);
    if (verdict.kind === 'refuse') return json(verdict.status, { error: { code: verdict.code } });
    const isReading = method === 'GET' || method === 'HEAD';
    if (isReading && path === '/healthz') return json(200, { status: 'ok' });
    if (isReading && path === '/readyz') {
      const { code, body } = readyAnswer(await readiness(), request.url ?? '');
      return json(code, body);
    }
    if (isReading && path === '/metrics') {
      const refusal = await mayReadMetrics(request);
      if (refusal !== undefined) return refusal;
      return { code: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body: await metrics() };
    }
    return json(404, { error: { code: 'not_found' } });
  };
}

function json(code: number, body: object): Answer {
  return { code, type: 'application/json; charset=utf-8', body: JSON.stringify(body) };
}

function send(request: IncomingMessage, response: ServerResponse, { code, type, body }: Answer): void {
  response.writeHead(code, {
    ...securityHeaders,
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    ...(code === 429 && { 'retry-after': '60' }),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Takes a free port if the configured one is in use: the process still works, and publishes its address. */
async function listenSomewhere(server: Server, { port, log }: HealthServerDeps): Promise<void> {
  try {
    await listenAt(server, port);
  } catch (error) {
    if (port === 0) throw new ParleyError('internal', 'No free port for /readyz.', { cause: error });
    log.warn({ port, reason: String(error) }, 'health.port-taken');
    await listenAt(server, 0);
  }
}

function listenAt(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: loopback, port }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo | null)?.port ?? 0;
}
