/** How messages arrive: the webhook, sockets that lose some, and polls. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket as UndiciSocket } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { againstSwagger } from './fairness.ts';
import { Hook } from './hook.ts';
import { type SignalServer, type SignalServerOptions, startSignalServer } from './server.ts';
import type { Person } from './types.ts';

let server: SignalServer;
let ada: Person;
const open: (() => void)[] = [];

const begin = async (options: SignalServerOptions = {}) => {
  server = await startSignalServer({ hasDeliveryReceipts: false, ...options });
  ada = server.world.addPerson({ name: 'Ada' });
};
afterEach(async () => {
  for (const close of open.splice(0)) close();
  expect(againstSwagger(server)).toEqual([]);
  await server.close();
});

const socketUrl = (number = server.number) =>
  `${server.url.replace('http', 'ws')}/v1/receive/${encodeURIComponent(number)}`;
/** Connects a listening client and collects the texts that it gets. */
const listen = async (number = server.number) => {
  const socket = new WebSocket(socketUrl(number));
  const texts: unknown[] = [];
  socket.on('message', (data) => {
    const { envelope, error } = JSON.parse(String(data));
    texts.push(error ?? envelope.dataMessage.message);
  });
  open.push(() => socket.terminate());
  await once(socket, 'open');
  return { socket, texts };
};
const withHook = async () => {
  const hook = await Hook.open();
  open.push(() => hook.close());
  server.webhookUrl = hook.url;
  return hook;
};
const says = (text: string) => server.people.writes({ from: ada, text });
const burst = (count: number) =>
  server.inOneWrite(() => {
    for (let index = 0; index < count; index += 1) says(`m${index}`);
  });
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `m${index}`);
const poll = async (query = '') => {
  const response = await fetch(`${server.url}/v1/receive/${server.number}?timeout=0&${query}`);
  const found = (await response.json()) as { envelope: { dataMessage: { message: string } } }[];
  return found.map(({ envelope }) => envelope.dataMessage.message);
};
const send = (signal?: AbortSignal) =>
  fetch(`${server.url}/v2/send`, {
    method: 'POST',
    body: JSON.stringify({ number: server.number, recipients: [ada.uuid], message: 'answer' }),
    ...(signal === undefined ? {} : { signal }),
  });

describe('sockets', () => {
  it('give every client of the account every message, by ws and by undici', async () => {
    await begin();
    const one = await listen();
    const foreign = await listen('+15559999999');
    const frames: string[] = [];
    const undici = new UndiciSocket(socketUrl());
    undici.addEventListener('message', ({ data }) => frames.push(String(data)));
    await server.waitFor(() => server.openSockets === 3);
    says('one');
    says('two');
    await server.waitFor(() => one.texts.length === 2 && frames.length === 2);
    expect(one.texts).toEqual(['one', 'two']);
    expect(frames.map((frame) => JSON.parse(frame))).toEqual(server.notifications);
    expect(foreign.texts).toEqual([]);
    undici.close();
    await server.waitFor(() => server.openSockets === 2);
  });

  it('keep nothing for those who come later', async () => {
    await begin();
    says('unheard');
    await delay(50);
    const { texts } = await listen();
    says('heard');
    await server.waitFor(() => texts.length === 1);
    expect(texts).toEqual(['heard']);
  });

  it('lose most of a burst, and nothing at a pace', async () => {
    await begin();
    const { texts } = await listen();
    burst(20);
    for (const text of ['a', 'b', 'c']) says(text);
    await server.waitFor(() => texts.at(-1) === 'c');
    expect(texts.slice(-3)).toEqual(['a', 'b', 'c']);
    expect(texts.length - 3).toBeGreaterThan(0);
    expect(texts.length - 3).toBeLessThan(10);
  });

  it('refuse a plain GET, and close when a client says too much', async () => {
    await begin();
    const plain = await fetch(socketUrl().replace('ws', 'http'));
    expect(plain.status).toBe(400);
    expect(plain.headers.get('content-type')).toContain('text/plain');
    expect(await plain.text()).toMatch(/^Bad Request\n\{"error":"websocket: the client is not using/);
    const { socket } = await listen();
    socket.send('x'.repeat(512));
    socket.send('x'.repeat(513));
    const [code] = await once(socket, 'close');
    expect(code).toBe(1009);
    expect(server.refusals.map(({ why }) => why)).toEqual([
      expect.stringContaining('not using the websocket protocol'),
      expect.stringContaining('Max payload size exceeded'),
    ]);
  });

  it('ping their clients, and answer theirs', async () => {
    await begin({ pingMs: 20 });
    const { socket } = await listen();
    await once(socket, 'ping');
    socket.ping('beat');
    const [payload] = await once(socket, 'pong');
    expect(String(payload)).toBe('beat');
  });

  it('half open are silent both ways and look open', async () => {
    await begin({ pingMs: 20 });
    const { socket, texts } = await listen();
    server.freezeSockets();
    let heard = 0;
    const count = () => {
      heard += 1;
    };
    // What was on its way at the freeze may still arrive.
    await delay(30);
    await delay(1);
    socket.on('ping', count).on('pong', count);
    socket.ping('beat');
    says('lost');
    await delay(150);
    expect([heard, texts, socket.readyState]).toEqual([0, [], WebSocket.OPEN]);
    const later = await listen();
    says('heard');
    await server.waitFor(() => later.texts.length === 1);
    expect(texts).toEqual([]);
  });

  it('carry errors as well, and break without a word', async () => {
    await begin();
    const { socket, texts } = await listen();
    server.sendErrorFrame('untrusted identity');
    await server.waitFor(() => texts.length === 1);
    expect(texts).toEqual(['untrusted identity']);
    server.cutSockets();
    const [code] = await once(socket, 'close');
    expect(code).toBe(1006);
  });
});

describe('the webhook', () => {
  it('gets whole frames of every account and kind, once, whatever it answers', async () => {
    await begin();
    const other = server.world.addAccount({ number: '+15550000002' });
    const hook = await withHook();
    let status = 500;
    hook.answer = () => status++;
    says('one');
    server.people.types(ada);
    server.people.writes({ from: ada, to: other, text: 'two' });
    await server.waitFor(() => server.posts.filter((post) => post.status !== undefined).length === 3);
    expect(hook.bodies).toEqual(
      server.notifications.map((params) => ({ jsonrpc: '2.0', method: 'receive', params })),
    );
    expect(server.posts.map((post) => post.status)).toEqual([500, 501, 502]);
    hook.close();
    says('three');
    await server.waitFor(() => server.posts.length === 4);
    says('four');
    await server.waitFor(() => server.posts.length === 5);
    expect(hook.bodies).toHaveLength(3);
  });

  it('gets all of a burst, and paces it so that a socket gets it too', async () => {
    await begin();
    const hook = await withHook();
    const { texts } = await listen();
    burst(200);
    await server.waitFor(() => hook.bodies.length === 200);
    await server.waitFor(() => texts.length === 200);
    expect(texts).toEqual(numbered(200));
  });

  it('that calls back before it answers waits for ever: the call goes out, its answer waits for the hook', async () => {
    await begin();
    const hook = await withHook();
    let sent: Promise<number> = Promise.resolve(0);
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    hook.answer = async () => {
      sent = send().then((response) => response.status);
      await Promise.race([sent, released]);
      return 200;
    };
    says('hi');
    await server.waitFor(() => server.lines(ada).length === 2);
    const isAnswered = await Promise.race([sent.then(() => true), delay(100).then(() => false)]);
    expect([isAnswered, server.posts[0]?.status]).toEqual([false, undefined]);
    release();
    expect(await sent).toBe(201);
    expect(server.posts[0]?.status).toBe(200);
  });

  it('cannot be set where signal-cli is run for each call', async () => {
    await begin({ mode: 'normal' });
    expect(() => {
      server.webhookUrl = 'http://127.0.0.1:1/';
    }).toThrow('does not start with a webhook');
  });
});

describe('gaps', () => {
  it('of signal-cli: sockets stay open, calls fail or hang, what came is lost or comes at once', async () => {
    await begin();
    const hook = await withHook();
    const { texts } = await listen();
    server.stopDaemon('lost');
    says('lost');
    expect((await send()).status).toBe(400);
    expect((await fetch(`${server.url}/v1/accounts`)).status).toBe(500);
    expect((await fetch(`${server.url}/v1/health`)).status).toBe(204);
    server.startDaemon();
    says('one');
    await server.waitFor(() => texts.length === 1);
    server.stopDaemon('burst');
    says('two');
    server.startDaemon();
    await server.waitFor(() => texts.length === 2 && hook.bodies.length === 2);
    expect(texts).toEqual(['one', 'two']);
  });

  it('of signal-cli: a call under way is never answered', async () => {
    await begin();
    const hook = await withHook();
    hook.answer = () => new Promise(() => {});
    says('hi');
    const stop = new AbortController();
    const sent = send(stop.signal).catch(() => 'gave up');
    await server.waitFor(() => server.lines(ada).length === 2);
    server.stopDaemon();
    server.webhookUrl = undefined;
    server.startDaemon();
    expect((await send()).status).toBe(201);
    expect(await Promise.race([sent, delay(100).then(() => 'still open')])).toBe('still open');
    stop.abort();
    expect(await sent).toBe('gave up');
  });

  it('of the container: what came meanwhile comes to the webhook at once, and to no socket', async () => {
    await begin();
    const hook = await withHook();
    const { socket, texts } = await listen();
    const closed = once(socket, 'close');
    await server.goAway();
    expect((await closed)[0]).toBe(1006);
    await expect(fetch(`${server.url}/v1/health`)).rejects.toThrow();
    says('one');
    says('two');
    await server.comeBack();
    await server.waitFor(() => hook.bodies.length === 2);
    expect(texts).toEqual([]);
  });

  it('and repeats: a notification can come again', async () => {
    await begin();
    const hook = await withHook();
    says('one');
    server.redeliver(1);
    await server.waitFor(() => hook.bodies.length === 2);
    expect(hook.bodies[0]).toEqual(hook.bodies[1]);
  });
});

describe.each(['normal', 'native'] as const)('polls in mode %s', (mode) => {
  it('fetch what waits, in order, as far as they ask', async () => {
    await begin({ mode });
    expect(await poll()).toEqual([]);
    burst(5);
    await server.goAway();
    await server.comeBack();
    expect(await poll('max_messages=2')).toEqual(['m0', 'm1']);
    expect(await poll()).toEqual(['m2', 'm3', 'm4']);
    expect(await poll()).toEqual([]);
    const response = await fetch(`${server.url}/v1/receive/${encodeURIComponent(server.number)}?timeout=0`);
    expect(response.headers.get('content-type')).toContain('text/plain');
  });

  it('wait for what comes', async () => {
    await begin({ mode });
    const found = fetch(`${server.url}/v1/receive/${server.number}?timeout=10&max_messages=1`);
    await server.waitFor(() => server.calls.length === 1);
    says('late');
    expect(await (await found).json()).toHaveLength(1);
  });

  it('refuse what they cannot read', async () => {
    await begin({ mode });
    for (const query of ['timeout=soon', 'max_messages=all', 'ignore_stories=yes'])
      expect((await fetch(`${server.url}/v1/receive/${server.number}?${query}`)).status).toBe(400);
    expect((await fetch(`${server.url}/v1/receive/+1`)).status).toBe(400);
  });

  it('consume by a handshake for a socket, which is answered like any other', async () => {
    await begin({ mode });
    says('eaten');
    const socket = new WebSocket(`${socketUrl()}?timeout=0`);
    const [error] = await once(socket, 'error');
    expect(String(error)).toContain('Unexpected server response: 200');
    expect(await poll()).toEqual([]);
    expect(server.refusals).toMatchObject([{ status: 200 }]);
  });

  it('that are cut off take their messages with them', async () => {
    await begin({ mode });
    says('lost');
    const { port } = new URL(server.url);
    const tcp = connect(Number(port), '127.0.0.1');
    tcp.on('error', () => undefined);
    tcp.write(`GET /v1/receive/${server.number}?timeout=1 HTTP/1.1\r\nHost: x\r\n\r\n`);
    await server.waitFor(() => server.calls.length === 1);
    tcp.destroy();
    expect(await poll()).toEqual([]);
    await server.waitFor(() => server.mailbox().fetched === 1);
    expect(server.calls[0]?.answered).toBe(false);
  });

  it('hold up sends of the same account', async () => {
    await begin({ mode });
    const found = fetch(`${server.url}/v1/receive/${server.number}?timeout=10&max_messages=1`);
    await server.waitFor(() => server.calls.length === 1);
    const sent = send();
    await server.waitFor(() => server.calls.length === 2);
    expect(await Promise.race([sent, delay(100).then(() => 'waits')])).toBe('waits');
    says('hi');
    expect((await found).status).toBe(200);
    expect((await sent).status).toBe(201);
  });
});
