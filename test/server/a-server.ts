import { randomBytes } from 'node:crypto';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { createHttpServer, type HttpServer, type HttpServerDeps } from '../../src/server/http-server.ts';
import { lazyStore } from '../support/lazy-store.ts';
import { silentLog } from '../support/silent-log.ts';
import { someOperations } from '../support/some-operations.ts';

export type RunningServer = {
  readonly server: HttpServer;
  readonly url: string;
  readonly port: number;
  readonly token: string;
  /** Returns the cookie header of a signed-in browser. */
  signIn(userAgent?: string): Promise<string>;
};

export async function aServer(deps: Partial<HttpServerDeps> = {}): Promise<RunningServer> {
  const token = deps.token ?? randomBytes(24).toString('base64url');
  const own = deps.store === undefined ? lazyStore() : undefined;
  const server = createHttpServer({
    host: '127.0.0.1',
    port: 0,
    token,
    store: own ?? lazyStore(),
    log: silentLog,
    readiness: async () => ({ missing: [] }),
    status: async () => ({
      version: '0.1.0',
      startedAt: 0,
      model: { name: 'demo', isDemo: true },
      channels: [{ id: 'secret-channel', state: 'off', detail: 'no token' }],
    }),
    metrics: async () => 'parley_up 1\n',
    operations: someOperations(),
    ...deps,
  });
  const { url } = await server.listen();
  const port = Number(new URL(url).port);
  const signIn = async (userAgent?: string) => {
    const headers = userAgent === undefined ? {} : { 'user-agent': userAgent };
    const answer = await send({ port, path: pathOf(server.signInLink()), headers });
    return String(answer.headers['set-cookie']).split(';')[0] ?? '';
  };
  const close = async () => {
    await server.close();
    await own?.close();
  };
  return { server: { ...server, close }, url, port, token, signIn };
}

export function pathOf(link: string): string {
  const { pathname, search } = new URL(link);
  return pathname + search;
}

export type Answer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

/** Sends a plain request with any Host and Origin, which `fetch` doesn't allow. */
export function send(options: {
  readonly port: number;
  readonly path: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { port, path, method = 'GET', headers = {}, body } = options;
    const request = httpRequest(
      { host: '127.0.0.1', port, path, method, headers, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks).toString(),
          }),
        );
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}
