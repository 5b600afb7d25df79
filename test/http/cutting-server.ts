/** A server on a thread of its own that ends its connections at every moment of a call, by FIN and by RST. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';

const connections = new Set<Socket>();
const upTo = (most: number) => Math.floor(Math.random() * most);
const cut = (socket: Socket) => (upTo(2) === 0 ? socket.destroy() : socket.resetAndDestroy());

const answer: RequestListener = async (request, response) => {
  await once(request.resume(), 'end').catch(() => undefined);
  const body = JSON.stringify('x'.repeat(upTo(2) === 0 ? 10 : upTo(200_000)));
  const said = upTo(3);
  if (said === 1) response.write(body.slice(0, 5));
  if (said === 2) response.end(body);
  const moment = upTo(4);
  if (moment === 0) cut(request.socket);
  else if (moment === 1) setImmediate(() => cut(request.socket));
  else if (said < 2) response.end(said === 1 ? body.slice(5) : body);
};

async function open(port: number): Promise<Server> {
  const server = createServer(answer);
  server.on('connection', (socket) => {
    connections.add(socket);
    socket.on('error', () => undefined).once('close', () => connections.delete(socket));
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return server;
}

let server = await open(0);
const { port } = server.address() as AddressInfo;
parentPort?.postMessage(port);
for (;;) {
  await pause(upTo(30));
  const closed = once(server.close(), 'close');
  for (const socket of connections) cut(socket);
  await closed;
  await pause(upTo(3));
  server = await open(port);
}
