/**
 * The address where `parley acp` connects an editor: a WebSocket that carries the protocol's lines, cut into frames of
 * any length. Only the access token counts.
 */
import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { WebSocket } from 'ws';
import { z } from 'zod';
import { rememberSuccess } from '#channel-kit/keep-recent.ts';
import { atConsole } from '../../commands/pair.ts';
import { type AcpDeps, createAcpAgent } from './acp-agent.ts';

export type AcpRouteDeps = Omit<AcpDeps, 'sdk'> & {
  /** Largest image, bytes. */
  readonly maxImageBytes: number;
};

/** The path of the address. */
export const acpPath = '/acp';

const query = z.object({
  agent: z.string().min(1).max(200).optional(),
  client: z.uuid().optional(),
});

/** Room for everything in a message besides an image. */
const spareBytes = 4 * 1024 * 1024;

/** Adds the address. Its sockets are closed before the server stops. */
export function mountAcp(app: FastifyInstance, { maxImageBytes, ...deps }: AcpRouteDeps): void {
  const load = rememberSuccess(() => import('@agentclientprotocol/sdk'));
  const open = new Set<WebSocket>();
  app.addHook('preClose', async () => {
    for (const socket of open) socket.close(1001, 'going away');
  });
  app.get(
    acpPath,
    { websocket: true, config: { access: 'operator', isSocket: true, call: 'none' } },
    (socket, request) => {
      open.add(socket);
      const gone = new AbortController();
      socket.once('close', () => {
        open.delete(socket);
        gone.abort();
      });
      const { agent = deps.programs.defaultAgent, client = randomUUID() } =
        query.safeParse(request.query).data ?? {};
      if (!deps.programs.agents.some(({ id }) => id === agent)) return socket.close(4404, 'unknown agent');
      const caller = { by: atConsole, signIn: undefined, signal: gone.signal };
      const streams = streamsOf(socket);
      load()
        .then((sdk) => {
          const { writable, readable } = streams;
          const stream = sdk.ndJsonStream(writable, readable, {
            maxMessageBytes: Math.ceil(maxImageBytes * 1.4) + spareBytes,
          });
          createAcpAgent({ ...deps, sdk }, { agent, client, caller }).connect(stream);
        })
        .catch((error: unknown) => {
          deps.gateway.log.warn({ error }, 'acp.failed');
          socket.close(1011, 'failed');
        });
    },
  );
}

function streamsOf(socket: WebSocket): {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
} {
  const readable = new ReadableStream<Uint8Array>({
    start: (controller) => {
      socket.on('message', (data: Buffer) => controller.enqueue(new Uint8Array(data)));
      socket.once('close', () => controller.close());
    },
  });
  const writable = new WritableStream<Uint8Array>({
    // Resolves once the bytes are on their way, so that a slow editor holds back only its own updates.
    write: (bytes) =>
      new Promise((resolve, reject) => {
        socket.send(Buffer.from(bytes).toString('utf8'), (error) => (error ? reject(error) : resolve()));
      }),
  });
  return { readable, writable };
}
