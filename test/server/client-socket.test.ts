import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { closeSocket, createClientSocket } from '../../src/server/client-socket.ts';

it('adds no listeners for a client that goes on sending what closes its socket', async () => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const opened = once(server, 'connection') as Promise<[WebSocket]>;
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const [socket] = await opened;
  createClientSocket(socket).onMessage(() => undefined);
  const before = socket.listenerCount('close');
  for (let call = 0; call < 20; call++) closeSocket(socket, 1003, 'text only');
  expect(socket.listenerCount('close')).toBe(before);
  await once(client, 'close');
});
