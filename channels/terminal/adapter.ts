import { createServer, type Server, type Socket } from 'node:net';
import { type ClientConnection, openClientConnection } from '#channel-kit/client-connection.ts';
import type { ServerFrame } from '#channel-kit/client-frames.ts';
import type { BotAccount, ChannelAdapter, ChannelDeps, Intake } from '#contracts/channel.ts';
import { ParleyError } from '#contracts/errors.ts';
import { isSameRoute, type ReplyRoute } from '#contracts/route.ts';
import { terminalAccount, terminalRoute } from './ids.ts';
import { inboundEnvelope } from './inbound.ts';
import { createLineStream } from './line-stream.ts';
import { outboundPlan } from './outbound.ts';
import { prepareSocketFile } from './socket-file.ts';

/** Clients at once; one more is closed unanswered. */
const maxClients = 64;

/** Serves clients of this machine's owner over a unix socket. Holds nothing that lasts. */
export function createTerminalAdapter(deps: ChannelDeps): ChannelAdapter {
  const open = new Set<ClientConnection>();
  let stopServing: (() => Promise<void>) | undefined;

  const push = (route: ReplyRoute, frame: ServerFrame) => {
    for (const connection of open) {
      const at = connection.route();
      if (at !== undefined && isSameRoute(at, route)) connection.push(frame);
    }
  };
  const stop = async () => {
    const stopNow = stopServing;
    stopServing = undefined;
    for (const connection of open) connection.close();
    await stopNow?.();
  };
  // A stop that fails leaves a socket file, which the next holder of the account removes.
  const onStale = () => void stop().catch(() => undefined);
  const onConnect = (intake: Intake, socket: Socket) => {
    const { timeline, clock, log } = deps;
    if (timeline === undefined) return void socket.destroy();
    const lines = createLineStream(socket);
    const link = { ...lines, onText: lines.onLine };
    const connection = openClientConnection({
      link,
      routeTo: terminalRoute,
      envelopeOf: inboundEnvelope,
      intake,
      timeline,
      clock,
      log,
      onStale,
    });
    open.add(connection);
    lines.onClose(() => open.delete(connection));
  };

  return {
    identify: async () => identity(deps),
    start: async (intake) => {
      if (stopServing !== undefined) return;
      const server = createServer((socket) => onConnect(intake, socket));
      server.maxConnections = maxClients;
      stopServing = await serve(server, deps.dataDir);
    },
    stop,
    send: async (outbound) => {
      const plan = outboundPlan(outbound, deps.clock.now());
      if (plan.kind === 'deliver') push(outbound.route, plan.frame);
      return plan.result;
    },
    preview: {
      draft: async (route, _draftId, text) => push(route, { type: 'preview', ...text }),
    },
  };
}

function identity(deps: ChannelDeps): BotAccount {
  if (deps.timeline !== undefined) return { id: terminalAccount, name: 'this machine' };
  throw new ParleyError(
    'channel_unavailable',
    'This process reads no timeline, so it has no terminal channel.',
  );
}

/** Resolves once clients can connect, with what takes the server and its file away again. */
async function serve(server: Server, dataDir: string): Promise<() => Promise<void>> {
  const file = await prepareSocketFile(dataDir);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(new ParleyError('channel_unavailable', `The socket ${file.path} cannot be opened.`, { cause })),
    );
    server.listen(file.path, resolve);
  });
  await file.protect();
  return async () => {
    await new Promise<void>((resolve) => server.close(() => resolve()));
    await file.remove();
  };
}
