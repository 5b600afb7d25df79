import { createServer, type Server, type Socket } from 'node:net';
import { createConnectedClients } from '#channel-kit/client-channel.ts';
import { startAndStop } from '#channel-kit/start-and-stop.ts';
import type { BotAccount, ChannelAdapter, ChannelDeps, Intake } from '#contracts/channel.ts';
import { ParleyError } from '#contracts/errors.ts';
import { accountId } from '#contracts/ids.ts';
import { terminalChannel, terminalRoute } from './ids.ts';
import { inboundEnvelope } from './inbound.ts';
import { createLineStream } from './line-stream.ts';
import { outboundPlan } from './outbound.ts';
import { prepareSocketFile } from './socket-file.ts';

/** How many clients may be connected at once; any more are closed unanswered. */
const maxClients = 64;

/** Serves clients of this machine's owner over a Unix socket. Keeps no lasting state. */
export function createTerminalAdapter(deps: ChannelDeps): ChannelAdapter {
  let stopServing: (() => Promise<void>) | undefined;

  const { start, stop } = startAndStop({
    begin: async (intake) => {
      const server = createServer((socket) => onConnect(intake, socket));
      server.maxConnections = maxClients;
      stopServing = await serve(server, deps.dataDir);
    },
    end: async () => {
      const stopNow = stopServing;
      stopServing = undefined;
      clients.closeAll();
      await stopNow?.();
    },
  });
  const clients = createConnectedClients({
    clock: deps.clock,
    log: deps.log,
    routeTo: terminalRoute,
    envelopeOf: inboundEnvelope,
    planOf: outboundPlan,
    // A stop that fails leaves a socket file, which the next holder of the account removes.
    onStale: () => void stop().catch(() => undefined),
  });
  const onConnect = (intake: Intake, socket: Socket) => {
    const { timeline } = deps;
    if (timeline === undefined) return void socket.destroy();
    clients.connect(createLineStream(socket), { intake, timeline });
  };

  return {
    identify: async () => identity(deps),
    start,
    stop,
    send: clients.send,
    preview: clients.preview,
  };
}

function identity(deps: ChannelDeps): BotAccount {
  if (deps.timeline !== undefined) return { id: accountId(terminalChannel), name: 'this machine' };
  throw new ParleyError(
    'channel_unavailable',
    'This process reads no timeline, so it has no terminal channel.',
  );
}

/** Resolves once clients can connect, with a function that closes the server and removes its file. */
async function serve(server: Server, dataDir: string): Promise<() => Promise<void>> {
  const file = await prepareSocketFile(dataDir);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(new ParleyError('channel_unavailable', `The socket ${file.path} can’t be opened.`, { cause })),
    );
    server.listen(file.path, resolve);
  });
  await file.publish();
  return async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await file.remove();
    await closed;
  };
}
