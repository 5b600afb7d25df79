import { Readable } from 'node:stream';
import type { FastifyError, FastifyInstance, FastifyRequest } from 'fastify';
import type { WebSocket } from 'ws';
import { z } from 'zod';
import { createBoundedSend } from '#channel-kit/bounded-send.ts';
import { clientFrameSchema, serverFrameSchema } from '#channel-kit/client-frames.ts';
import type {
  ClientSocket,
  RouteHost,
  UploadedFile,
  WebhookAnswer,
  WebhookRequest,
} from '#contracts/route-host.ts';
import { refuse } from './request-auth.ts';
import { fileType } from './request-guard.ts';

/** The routes of the channels. They may be added and replaced while the server listens. */
export interface ChannelRoutes {
  /** Returns the routes of one connection. `line`: the first part of their addresses, see `connectionName`. */
  hostFor(line: string): RouteHost;
  /** Adds the wildcard routes to the server; their handlers are looked up per request. */
  mount(app: FastifyInstance): void;
  /** Returns the sign-ins that have open sockets. */
  sessionsInUse(): ReadonlySet<string>;
  /** Closes the open sockets of one sign-in, or all. */
  closeSockets(which: { readonly session: string } | 'all', reason: string): void;
}

type SocketHandler = (socket: ClientSocket) => void;
type WebhookHandler = (request: WebhookRequest) => Promise<WebhookAnswer>;
type Webhook = {
  readonly handle: WebhookHandler;
  readonly knowsSecret: (caller: Omit<WebhookRequest, 'body'>) => boolean;
};
type UploadHandler = {
  readonly take: (file: UploadedFile) => Promise<WebhookAnswer>;
  readonly drop: ((id: string) => Promise<void>) | undefined;
};
type ChannelParams = { readonly channel: string; readonly path: string; readonly '*'?: string };

const socket = {
  method: 'GET',
  path: '/channels/:channel/:path',
  summary: 'Opens a conversation as the page does: its messages, and what the agent is doing',
  access: 'owner',
  frames: { client: clientFrameSchema, server: serverFrameSchema },
} as const;

const socketOnly = 'This address is a WebSocket’s.';

const webhookBodyBytes = 1024 * 1024;

export function createChannelRoutes({
  absentWebhookStatus = 404,
  maxUploadBytes = 0,
}: {
  /** Status for a webhook that no channel has registered, or not yet. Default: 404. */
  readonly absentWebhookStatus?: 404 | 503;
  /** Largest file that a client may send, bytes. Default: none may be sent. */
  readonly maxUploadBytes?: number;
} = {}): ChannelRoutes {
  const sockets = new Map<string, SocketHandler>();
  const webhooks = new Map<string, Webhook>();
  const uploads = new Map<string, UploadHandler>();
  const open = new Map<WebSocket, string | undefined>();
  return {
    hostFor: (line) => ({
      socket: (path, onOpen) => void sockets.set(`${line}/${path}`, onOpen),
      upload: (take, drop) => void uploads.set(line, { take, drop }),
      webhook: (path, handle, knowsSecret = () => true) =>
        void webhooks.set(`${line}/${path}`, { handle, knowsSecret }),
    }),
    mount: (app) => {
      mountSockets(app, sockets, open);
      mountWebhooks(app, webhooks, absentWebhookStatus);
      mountUploads(app, uploads, maxUploadBytes);
    },
    sessionsInUse: () => new Set([...open.values()].filter((session) => session !== undefined)),
    closeSockets: (which, reason) => {
      for (const [socket, session] of open) {
        if (which === 'all') closeSocket(socket, 1001, reason);
        else if (which.session === session) closeSocket(socket, 1008, reason);
      }
    },
  };
}

function mountSockets(
  app: FastifyInstance,
  handlers: ReadonlyMap<string, SocketHandler>,
  open: Map<WebSocket, string | undefined>,
): void {
  app.route<{ Params: ChannelParams }>({
    method: 'GET',
    url: socket.path,
    config: { access: 'owner', isSocket: true, call: socket },
    handler: async (_request, reply) => refuse(reply, { status: 404, code: 'not_found', text: socketOnly }),
    wsHandler: (opened, request) => {
      const handler = handlers.get(routeName(request.params));
      if (handler === undefined) return closeSocket(opened, 1013, 'not ready');
      open.set(opened, request.identity?.kind === 'session' ? request.identity.id : undefined);
      opened.once('close', () => open.delete(opened));
      handler(createClientSocket(opened));
    },
  });
}

function mountWebhooks(
  app: FastifyInstance,
  webhooks: ReadonlyMap<string, Webhook>,
  absentStatus: number,
): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser(
      '*',
      { parseAs: 'buffer', bodyLimit: webhookBodyBytes },
      (_request, body, done) => done(null, body),
    );
    // Every route of this scope has these parameters.
    const paramsOf = ({ params }: FastifyRequest) => params as ChannelParams;
    const handlerOf = (params: ChannelParams) => webhooks.get(routeName(params))?.handle;
    scope.addHook('onRequest', async (request, reply) => {
      const { headers } = request;
      const params = paramsOf(request);
      const webhook = webhooks.get(routeName(params));
      if (webhook?.knowsSecret({ params: params['*'] ?? '', headers }) !== false) return;
      return reply.code(403).send();
    });
    const answer = async (request: FastifyRequest<{ Params: ChannelParams }>) => {
      const handler = handlerOf(request.params);
      if (handler === undefined) return { status: absentStatus };
      const body = request.body instanceof Uint8Array ? request.body : new Uint8Array();
      return handler({ params: request.params['*'] ?? '', headers: request.headers, body });
    };
    /** A channel whose network won't send the request again has to know of it. */
    const errorHandler = async (error: FastifyError, request: FastifyRequest) => {
      if (error.code !== 'FST_ERR_CTP_BODY_TOO_LARGE') throw error;
      const params = paramsOf(request);
      await handlerOf(params)?.({ params: params['*'] ?? '', headers: request.headers, body: undefined });
      throw error;
    };
    const config = { access: 'webhook', call: 'none' } as const;
    const options = { config, errorHandler, bodyLimit: webhookBodyBytes };
    for (const url of ['/channels/:channel/:path', '/channels/:channel/:path/*']) {
      scope.post<{ Params: ChannelParams }>(url, options, async (request, reply) => {
        const { status, body } = await answer(request);
        return reply
          .code(status)
          .type('text/plain; charset=utf-8')
          .send(body ?? '');
      });
    }
  });
}

/** Adds the upload routes. The bytes are passed on as they arrive, so a complete file is never in memory. */
function mountUploads(
  app: FastifyInstance,
  handlers: ReadonlyMap<string, UploadHandler>,
  maxBytes: number,
): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser(fileType, (_request, body, done) => done(null, body));
    const config = { access: 'owner', isUpload: true, call: 'none' } as const;
    const options = { config, bodyLimit: Math.max(1, maxBytes) };
    scope.post<{ Params: ChannelParams }>('/uploads/:channel', options, async (request, reply) => {
      const handler = handlers.get(request.params.channel);
      if (handler === undefined || !(request.body instanceof Readable)) return reply.code(404).send();
      const { status, body } = await handler.take({ bytes: request.body, maxBytes });
      return reply
        .code(status)
        .type('application/json; charset=utf-8')
        .send(body ?? '{}');
    });
  });
  const dropping = { config: { access: 'owner', call: 'none' } as const, bodyLimit: 1024 };
  app.post<{ Params: ChannelParams }>('/uploads/:channel/drop', dropping, async (request, reply) => {
    const named = droppedSchema.safeParse(request.body);
    const drop = handlers.get(request.params.channel)?.drop;
    if (drop === undefined || !named.success) return reply.code(404).send();
    await drop(named.data.id);
    return reply.code(204).send();
  });
}

const droppedSchema = z.object({ id: z.string() });

function routeName(params: ChannelParams): string {
  return `${params.channel}/${params.path}`;
}

const heartbeatMs = 30_000;
const closeGraceMs = 300;

/** Wraps one open WebSocket: text only, with a bounded buffer, and closed when the other side is gone. */
export function createClientSocket(socket: WebSocket): ClientSocket {
  watchHeartbeat(socket);
  const send = createBoundedSend({
    waiting: () => socket.bufferedAmount,
    write: (text) => socket.send(text),
  });
  return {
    send: (text) => {
      if (socket.readyState === socket.OPEN && !send(text)) closeSocket(socket, 1013, 'too slow');
    },
    close: (code, reason) => closeSocket(socket, code, reason),
    onMessage: (listener) => {
      socket.on('message', (data, isBinary) => {
        if (isBinary) return closeSocket(socket, 1003, 'text only');
        listener(data.toString());
      });
    },
    setPaused: (isPaused) => (isPaused ? socket.pause() : socket.resume()),
    onClose: (listener) => void socket.once('close', listener),
  };
}

/** Closes the socket gracefully, or by force if the other side doesn't answer within 300 ms. */
export function closeSocket(socket: WebSocket, code: number, reason: string): void {
  socket.close(code, reason);
  // A client may cause many closes of one socket, on which listeners that clear the timer would pile up.
  setTimeout(() => socket.terminate(), closeGraceMs).unref();
}

/** Terminates the socket when the other side stops answering. */
export function watchHeartbeat(socket: WebSocket): void {
  let isAlive = true;
  socket.on('pong', () => {
    isAlive = true;
  });
  const timer = setInterval(() => {
    if (!isAlive) return socket.terminate();
    isAlive = false;
    socket.ping();
  }, heartbeatMs);
  timer.unref();
  socket.once('close', () => clearInterval(timer));
}
