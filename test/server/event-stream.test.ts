import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { FastifyReply } from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { openEventStream } from '../../src/server/event-stream.ts';

it('waits for a reader who takes nothing, instead of piling up what they miss', async () => {
  const event = { text: 'x'.repeat(100_000) };
  const over = Promise.withResolvers<{ readonly sent: number; readonly mostWaiting: number }>();
  const isStuck = Promise.withResolvers<void>();
  const server = createServer(async (_, raw) => {
    const gone = new AbortController();
    raw.once('close', () => gone.abort());
    // The stream uses nothing else of a reply.
    const reply = { raw, hijack: () => undefined, getHeaders: () => ({}) } as unknown as FastifyReply;
    const stream = openEventStream(reply, gone.signal);
    let [sent, mostWaiting] = [0, 0];
    const stuck = setInterval(() => raw.writableNeedDrain && isStuck.resolve(), 50);
    while (await stream.send(event)) {
      sent += 1;
      mostWaiting = Math.max(mostWaiting, raw.writableLength);
      if (sent === 10_000) break;
    }
    clearInterval(stuck);
    over.resolve({ sent, mostWaiting });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const reader = connect((server.address() as AddressInfo).port, '127.0.0.1');
  reader.pause();
  reader.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await isStuck.promise;
  reader.destroy();
  const { sent, mostWaiting } = await over.promise;
  expect(sent).toBeLessThan(10_000);
  expect(mostWaiting).toBeLessThan(1_000_000);
});
