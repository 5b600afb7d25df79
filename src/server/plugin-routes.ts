/** The routes of plugins, below `/plugins/<id>/`. The server's own checks come first, as for every route. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { withLimit } from '#channel-kit/with-limit.ts';
import type { PluginResponse, PluginRoute } from '#contracts/plugin-parts.ts';

/** The plugins of this process, as its server needs them. */
export interface PluginRoutes {
  route(plugin: string, method: string, path: string): PluginRoute | undefined;
  noteFault(plugin: string, what: string, error: unknown): void;
}

const timeoutMs = 30_000;
const maxAnswerBytes = 8 * 1024 * 1024;
const webhookBytes = 1024 * 1024;

type Params = { readonly plugin: string; readonly '*': string };

/** Adds the wildcard routes. */
export function mountPluginRoutes(app: FastifyInstance, plugins: PluginRoutes): void {
  const config = { access: 'owner', call: 'none' } as const;
  for (const method of ['GET', 'POST'] as const)
    app.route<{ Params: Params }>({
      method,
      url: '/plugins/:plugin/*',
      config,
      handler: async (request, reply) => {
        const { plugin, '*': path } = request.params;
        // The only open addresses are below, without a GET.
        const answer = path.startsWith('webhook/')
          ? notThere
          : await answerTo(plugins, request, { plugin, path });
        return reply.code(answer.status).type(answer.type).send(answer.text);
      },
    });
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    const options = { parseAs: 'buffer', bodyLimit: webhookBytes } as const;
    scope.addContentTypeParser('*', options, (_request, body, done) => done(null, body));
    scope.post<{ Params: Params }>(
      '/plugins/:plugin/webhook/*',
      { bodyLimit: webhookBytes, config: { access: 'webhook', call: 'none' } },
      async (request, reply) => {
        const { plugin, '*': rest } = request.params;
        const answer = await answerTo(plugins, request, { plugin, path: `webhook/${rest}` });
        return reply.code(answer.status).type(answer.type).send(answer.text);
      },
    );
  });
}

type Answer = { readonly status: number; readonly type: string; readonly text: string | Uint8Array };

const notThere: Answer = { status: 404, type: 'application/json', text: '{"error":{"code":"not_found"}}' };

async function answerTo(
  { route, noteFault }: PluginRoutes,
  { method, query, headers, body }: FastifyRequest<{ Params: Params }>,
  { plugin, path }: { readonly plugin: string; readonly path: string },
): Promise<Answer> {
  const found = route(plugin, method, path);
  if (found === undefined) return notThere;
  try {
    const { authorization: _, cookie: __, ...shown } = headers;
    const answer = await withLimit(timeoutMs, undefined, (signal) => {
      const late = Promise.withResolvers<never>();
      signal.addEventListener('abort', () => late.reject(signal.reason), { once: true });
      const request = { query: query as Record<string, unknown>, headers: shown, body, signal };
      return Promise.race([found.handle(request), late.promise]);
    });
    return rendered(answer);
  } catch (error) {
    noteFault(plugin, `route ${path}`, error);
    return { status: 500, type: 'application/json', text: '{"error":{"code":"plugin_failed"}}' };
  }
}

function rendered({ status = 200, type, body = '' }: PluginResponse): Answer {
  const isRaw = typeof body === 'string' || body instanceof Uint8Array;
  const text = isRaw ? body : JSON.stringify(body);
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw new RangeError(`${status} is no status`);
  if (Buffer.byteLength(text) > maxAnswerBytes) throw new RangeError('the answer has more than 8 MB');
  return { status, type: type ?? (isRaw ? 'text/plain; charset=utf-8' : 'application/json'), text };
}
