import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { closeSocket, createClientSocket } from '../../src/server/channel-routes.ts';

/** Returns both ends of a connection. */
async function aConnection(): Promise<{ readonly socket: WebSocket; readonly client: WebSocket }> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const opened = once(server, 'connection') as Promise<[WebSocket]>;
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => client.terminate());
  const [[socket]] = await Promise.all([opened, once(client, 'open')]);
  return { socket, client };
}

it('adds no listeners for a client that keeps sending invalid frames', async () => {
  const { socket, client } = await aConnection();
  createClientSocket(socket).onMessage(() => undefined);
  const before = socket.listenerCount('close');
  for (let call = 0; call < 20; call++) closeSocket(socket, 1003, 'text only');
  expect(socket.listenerCount('close')).toBe(before);
  await once(client, 'close');
});

it('sends a page of long messages in full, and the frame after it', async () => {
  const { socket, client } = await aConnection();
  const heard: number[] = [];
  client.on('message', (data) => heard.push(data.toString().length));
  const last = new Promise<unknown>((resolve) => {
    client.on('message', () => heard.length === 2 && resolve(heard));
    client.on('close', resolve);
  });
  const { send } = createClientSocket(socket);
  send('x'.repeat(12_000_000));
  send('standing');
  expect(await last).toEqual([12_000_000, 8]);
});

it('disconnects a client that reads nothing', async () => {
  const { socket, client } = await aConnection();
  client.pause();
  const { send } = createClientSocket(socket);
  let sent = 0;
  for (; socket.readyState === socket.OPEN && sent < 50; sent++) send('x'.repeat(1_000_000));
  expect(sent).toBeLessThan(20);
});
