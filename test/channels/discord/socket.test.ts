/** A gateway connection ends when it is closed, however far it has got and whatever the other side does. */
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import { systemClock } from '#channel-kit/system-clock.ts';
import { GatewaySocket } from '../../../channels/discord/socket.ts';

/** Starts a server that accepts connections and upgrades them to WebSockets only if `upgrades` is set. */
async function aServer({ upgrades = false } = {}) {
  const server = createServer();
  const sockets = new WebSocketServer({ noServer: true });
  const connected = Promise.withResolvers<Socket>();
  server.on('connection', (socket) => connected.resolve(socket));
  server.on('upgrade', (request, socket, head) => {
    if (!upgrades) return;
    sockets.handleUpgrade(request, socket, head, (other) => {
      other.send('{"op":10,"d":{"heartbeat_interval":41250}}');
      // From here on it reads nothing, not even the close frame.
      other.pause();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it has no port');
  return { url: `ws://127.0.0.1:${address.port}/`, connected: connected.promise };
}

function dial(url: string) {
  const ignore = () => undefined;
  const greeted = Promise.withResolvers<void>();
  const told = { onSession: ignore, onIdentify: greeted.resolve, onActivity: ignore, onDispatch: ignore };
  const socket = new GatewaySocket({ url, token: 'token', intents: 1, clock: systemClock, ...told });
  return { socket, greeted: greeted.promise };
}

/** Resolves once the other side has left the connection, in whatever way. */
async function isLeft(socket: Socket): Promise<void> {
  socket.on('error', () => undefined).resume();
  if (socket.readableEnded || socket.closed) return;
  await new Promise((resolve) => socket.once('end', resolve).once('close', resolve));
}

it.each(['at once', 'while it is being made'] as const)('leaves a socket that is closed %s', async (when) => {
  const { connected, url } = await aServer();
  const { socket } = dial(url);
  if (when === 'while it is being made') await connected;
  socket.close('enough', 'over');
  expect(await socket.ended).toEqual({ reason: 'enough', session: 'over' });
  await socket.closed;
  const other = await Promise.race([connected, systemClock.wait(50)]);
  if (other instanceof Object) await isLeft(other);
});

it('cuts a connection whose other side never closes its half', async () => {
  const { connected, url } = await aServer({ upgrades: true });
  const { socket, greeted } = dial(url);
  await greeted;
  socket.close('enough', 'kept');
  await socket.closed;
  await isLeft(await connected);
});
