import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { channelId } from '#contracts/ids.ts';
import type { UploadedFile } from '#contracts/route-host.ts';
import { connectionLimits } from '../../src/server/connection-limits.ts';
import { aServer, type RunningServer } from './a-server.ts';

const upgrade =
  'GET /channels/post/chat HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n';
const halfSignIn =
  'POST /api/sign-in HTTP/1.1\r\nhost: HOST\r\norigin: http://HOST\r\nx-parley: 1\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{"to';
const sentHalf: readonly (readonly [what: string, sent: string])[] = [
  ['nothing at all', ''],
  ['a line without its end', 'GET /healthz HT'],
  ['a head without its end', 'GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: b'],
  ['an upgrade without its end', upgrade],
  ['a sign-in without its body', halfSignIn],
  [
    'a webhook whose chunks never end',
    'POST /channels/post/webhook/x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n',
  ],
];

const halfFile = (token: string) =>
  `POST /uploads/post HTTP/1.1\r\nhost: HOST\r\nauthorization: Bearer ${token}\r\nx-parley: 1\r\nconnection: close\r\ncontent-type: application/octet-stream\r\ncontent-length: 8\r\n\r\nhalf`;

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  let text = '';
  for await (const chunk of bytes) text += Buffer.from(chunk).toString();
  return text;
}

describe('half-sent requests', () => {
  let running: RunningServer;
  beforeAll(async () => {
    const limits = {
      ...connectionLimits,
      headMs: 200,
      requestMs: 300,
      checkMs: 50,
      idleMs: 200,
      perSource: 12,
    };
    running = await aServer({ limits, maxUploadBytes: 1_000 });
    const routes = running.server.routesFor(channelId('post'));
    routes.webhook('webhook', async () => ({ status: 201 }));
    routes.socket('chat', () => undefined);
  });
  afterAll(() => running.server.close());

  it.each(sentHalf)('cuts off a half-sent request: %s', async (_what, sent) => {
    const { socket, ended } = open(sent);
    // Sending one byte now and then, as a slow attacker does, buys no extra time.
    const dribble = setInterval(() => socket.write(sent === '' ? '' : 'a'), 40);
    // All that matters is that it ends, because nothing else would end it later.
    await ended;
    clearInterval(dribble);
  });

  it("waits for a signed-in client's file as long as it keeps arriving", async () => {
    const begun = Promise.withResolvers<void>();
    running.server.routesFor(channelId('post')).upload(async ({ bytes }) => {
      begun.resolve();
      return { status: 200, body: await textOf(bytes) };
    });
    const file = open(halfFile(running.token));
    await begun.promise;
    // A request that began later is cut off, so the file has had longer than any other request.
    await open(halfSignIn).ended;
    file.socket.write('rest');
    expect(await file.ended).toContain('halfrest');
  });

  it('cuts off a file that stops arriving', async () => {
    const limits = { ...connectionLimits, uploadIdleMs: 100 };
    const strict = await aServer({ limits, maxUploadBytes: 1_000 });
    const take = async ({ bytes }: UploadedFile) => ({ status: 200, body: await textOf(bytes) });
    strict.server.routesFor(channelId('post')).upload(take);
    expect(await open(halfFile(strict.token), strict.port).ended).toBe('');
    await strict.server.close();
  });

  it('limits the connections of one address', async () => {
    const held = Array.from({ length: 12 }, () => open('GET /healthz HTTP/1.1\r\nhost: HOST\r\n'));
    await Promise.all(held.map(({ connected }) => connected));
    const more = open('GET /healthz HTTP/1.1\r\nhost: HOST\r\n\r\n');
    expect(await more.ended).toBe('');
    await Promise.all(held.map(({ ended }) => ended));
    const after = open('GET /healthz HTTP/1.1\r\nhost: HOST\r\nconnection: close\r\n\r\n');
    expect(await after.ended).toContain('200 OK');
  });

  function open(text: string, port = running.port) {
    const socket: Socket = connect(port, '127.0.0.1');
    let heard = '';
    socket.on('data', (data) => {
      heard += data.toString();
    });
    socket.on('error', () => undefined);
    socket.write(text.replaceAll('HOST', `127.0.0.1:${port}`));
    const connected = new Promise<void>((resolve) => socket.once('connect', () => resolve()));
    const ended = new Promise<string>((resolve) => socket.once('close', () => resolve(heard)));
    return { socket, connected, ended };
  }
});
