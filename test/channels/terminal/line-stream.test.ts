import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import type { ClientLink } from '#channel-kit/client-connection.ts';
import { createLineStream } from '../../../channels/terminal/line-stream.ts';

async function aStream(lineMs: number) {
  const lines: string[] = [];
  const accepted = Promise.withResolvers<{ readonly stream: ClientLink; readonly served: Socket }>();
  const server = createServer((served) => {
    const stream = createLineStream(served, lineMs);
    stream.onText((line) => lines.push(line));
    accepted.resolve({ stream, served });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => undefined);
  onTestFinished(() => {
    socket.destroy();
    server.close();
  });
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return { ...(await accepted.promise), socket, lines, ended };
}

it('closes the connection over a line that is never completed', async () => {
  const { socket, lines, ended } = await aStream(100);
  socket.write('{"type":"whole"}\n{"type":');
  const dribble = setInterval(() => socket.write(' '), 20);
  await ended;
  clearInterval(dribble);
  expect(lines).toEqual(['{"type":"whole"}']);
});

it('reads nothing while paused and does not count that time against a line', async () => {
  const { socket, served, stream, lines } = await aStream(50);
  const begun = new Promise<void>((resolve) => {
    served.once('data', () => {
      stream.setPaused(true);
      resolve();
    });
  });
  socket.write('{"type":');
  await begun;
  socket.write('"kept waiting"}\n');
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect({ lines, isCut: served.destroyed }).toEqual({ lines: [], isCut: false });
  const read = new Promise((resolve) => served.once('data', resolve));
  stream.setPaused(false);
  await read;
  expect(lines).toEqual(['{"type":"kept waiting"}']);
});

it('waits between two lines for as long as the client likes', async () => {
  const { socket, lines } = await aStream(1);
  for (const line of ['one', 'two', 'three']) {
    socket.write(`${line}\n`);
    while (!lines.includes(line)) await new Promise((resolve) => setTimeout(resolve, 10));
  }
  expect(socket.destroyed).toBe(false);
});

it('sends lines of any length, and cuts off a client that does not read them', async () => {
  const { stream, served, socket } = await aStream(1000);
  let received = 0;
  const whole = new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (received === 12_000_010) resolve();
    });
  });
  stream.send('x'.repeat(12_000_000));
  stream.send('standing');
  await whole;
  socket.pause();
  for (const _ of [1, 2, 3]) stream.send('x'.repeat(12_000_000));
  expect(served.destroyed).toBe(true);
});

it('leaves no listener on its socket, however often it sends and closes', async () => {
  const { stream, served } = await aStream(1000);
  const listeners = () => served.eventNames().map((name) => [name, served.listenerCount(name)]);
  const before = listeners();
  for (let round = 0; round < 20; round += 1) {
    stream.send('a line');
    stream.close();
  }
  expect(listeners()).toEqual(before);
});
