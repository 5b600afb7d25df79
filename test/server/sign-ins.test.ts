import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { channelId } from '#contracts/ids.ts';
import { connectionLimits } from '../../src/server/connection-limits.ts';
import { describeBrowser } from '../../src/server/sign-ins.ts';
import { maxSignIns } from '../../src/store/sign-ins/sign-ins.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { aServer, pathOf, type RunningServer, send } from './a-server.ts';

const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

describeEachDatabase('sign-ins', (store, beside) => {
  const token = randomBytes(24).toString('base64url');
  const running: RunningServer[] = [];
  const closers: (() => Promise<void>)[] = [];
  /** Starts another server on the database, like another process or the next start. */
  const start = async (deps: Parameters<typeof aServer>[0] = {}) => {
    const server = await aServer({ token, store: store(), ...deps });
    server.server.routesFor(channelId('post')).socket('chat', () => undefined);
    running.push(server);
    return server;
  };
  afterEach(async () => {
    for (const { server } of running.splice(0)) await server.close();
    for (const close of closers.splice(0)) await close();
    await beside.sql('delete from "signIns"');
    await beside.sql('delete from lockouts');
  });

  /** Returns the same cookie under the name that the server expects. */
  const cookieAt = ({ port }: RunningServer, cookie: string) =>
    `parley-${port}=${cookie.slice(cookie.indexOf('=') + 1)}`;
  const get = (at: RunningServer, path: string, cookie: string) =>
    send({ port: at.port, path, headers: { cookie: cookieAt(at, cookie) } });
  const post = (at: RunningServer, path: string, { cookie, body = {} }: { cookie: string; body?: object }) =>
    send({
      port: at.port,
      path,
      method: 'POST',
      headers: {
        ...{ origin: at.url, 'content-type': 'application/json', 'x-parley': '1' },
        cookie: cookieAt(at, cookie),
      },
      body: JSON.stringify(body),
    });
  const listAt = async (at: RunningServer, cookie: string) =>
    JSON.parse((await get(at, '/api/sign-ins', cookie)).body).signIns as {
      id: string;
      browser: string;
      isThis: boolean;
    }[];
  const openSocket = (at: RunningServer, cookie: string) =>
    new Promise<WebSocket>((resolve, reject) => {
      const socket = new WebSocket(`${at.url.replace('http', 'ws')}/channels/post/chat`, {
        headers: { cookie: cookieAt(at, cookie), origin: at.url },
      });
      socket.once('open', () => resolve(socket));
      socket.on('error', reject);
    });

  it('keeps a sign-in link valid after a HEAD request, which scanners and previews send', async () => {
    const server = await start();
    const path = pathOf(server.server.signInLink());
    const headers = { host: `127.0.0.1:${server.port}` };
    const looked = await send({ port: server.port, path, method: 'HEAD', headers });
    expect([looked.status, looked.headers['set-cookie']]).toEqual([200, undefined]);
    expect((await send({ port: server.port, path, headers })).headers.location).toBe('/');
  });

  it('keeps sign-ins and sign-outs over a restart', async () => {
    const first = await start();
    const [left, kept] = [await first.signIn(), await first.signIn()];
    expect((await post(first, '/api/sign-out', { cookie: left })).status).toBe(204);
    await first.server.close();
    const second = await start();
    expect((await get(second, '/api/status', left)).status).toBe(401);
    expect((await get(second, '/api/status', kept)).status).toBe(200);
  });

  it('lists sign-ins by browser name, without their secrets', async () => {
    const server = await start();
    const [own, other] = [await server.signIn(firefox), await server.signIn('<b>curl</b>\t8')];
    const answer = await get(server, '/api/sign-ins', own);
    expect(JSON.parse(answer.body)).toMatchObject({
      signIns: expect.arrayContaining([
        expect.objectContaining({ browser: 'Firefox on Linux', isThis: true }),
        expect.objectContaining({ browser: '<b>curl</b> 8', isThis: false }),
      ]),
    });
    for (const cookie of [own, other]) expect(answer.body).not.toContain(cookie.split('=')[1]);
    expect((await send({ port: server.port, path: '/api/sign-ins' })).status).toBe(401);
  });

  it('ends a sign-in in every process, with its open sockets and no others', async () => {
    const [here, there] = [await start(), await start({ store: await another() })];
    const [ended, kept] = [await here.signIn(), await here.signIn()];
    const sockets = await Promise.all([openSocket(there, ended), openSocket(there, kept)]);
    const closed = new Promise((resolve) => sockets[0]?.once('close', resolve));
    const id = (await listAt(here, ended)).find(({ isThis }) => isThis)?.id;
    const end = await post(here, '/api/sign-ins/end', { cookie: kept, body: { id } });
    expect(JSON.parse(end.body)).toMatchObject({ ended: 1 });
    expect(await closed).toBe(1008);
    expect((await get(there, '/api/status', ended)).status).toBe(401);
    expect((await get(there, '/api/status', kept)).status).toBe(200);
    expect(sockets[1]?.readyState).toBe(WebSocket.OPEN);
    for (const socket of sockets) socket.terminate();
  });

  it('ends all other sign-ins', async () => {
    const server = await start();
    const cookies = [await server.signIn(), await server.signIn(), await server.signIn()];
    const [own = ''] = cookies;
    const end = await post(server, '/api/sign-ins/end', { cookie: own, body: { others: true } });
    expect(JSON.parse(end.body)).toMatchObject({ ended: 2 });
    expect((await listAt(server, own)).map(({ isThis }) => isThis)).toEqual([true]);
    const bad = await post(server, '/api/sign-ins/end', { cookie: own, body: { all: 1 } });
    expect(bad.status).toBe(400);
  });

  it('ends the running requests of a sign-in with it', async () => {
    const limits = { ...connectionLimits, uploadIdleMs: 600_000, requestMs: 600_000 };
    const server = await start({ limits, maxUploadBytes: 1_000 });
    const begun = Promise.withResolvers<void>();
    server.server.routesFor(channelId('post')).upload(async ({ bytes }) => {
      begun.resolve();
      let size = 0;
      for await (const chunk of bytes) size += chunk.length;
      return { status: 200, body: String(size) };
    });
    const [ended, kept] = [await server.signIn(), await server.signIn()];
    const head = `POST /uploads/post HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\norigin: ${server.url}\r\n`;
    const form = 'x-parley: 1\r\ncontent-type: application/octet-stream\r\ncontent-length: 8\r\n';
    const socket = connect(server.port, '127.0.0.1');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined);
    socket.write(`${head}${form}cookie: ${cookieAt(server, ended)}\r\n\r\nhalf`);
    await begun.promise;
    await post(server, '/api/sign-ins/end', { cookie: kept, body: { others: true } });
    await closed;
  });

  it('ends the unused links that a sign-in has requested with it', async () => {
    const server = await start();
    const [thief, owner] = [await server.signIn(), await server.signIn()];
    const link = async (cookie: string): Promise<string> =>
      JSON.parse((await post(server, '/api/sign-in-links', { cookie })).body).url;
    const [stolen, own] = [await link(thief), await link(owner)];
    await post(server, '/api/sign-ins/end', { cookie: owner, body: { others: true } });
    const use = async (url: string) =>
      (await send({ port: server.port, path: pathOf(url) })).headers.location;
    expect([await use(stolen), await use(own)]).toEqual(['/#link-not-valid', '/']);
    expect(await listAt(server, owner)).toHaveLength(2);
  });

  it('limits the number of sign-ins, drops the least recently seen and deletes expired ones', async () => {
    let now = 1_000_000;
    const server = await start({ clock: { now: () => now, wait: async () => undefined } });
    const first = await server.signIn();
    for (let i = 0; i < maxSignIns; i++) {
      now += 1;
      await server.signIn();
    }
    const last = await server.signIn();
    expect(await listAt(server, last)).toHaveLength(maxSignIns);
    expect((await get(server, '/api/status', first)).status).toBe(401);
    now += 31 * 24 * 60 * 60_000;
    const fresh = await server.signIn();
    expect(await listAt(server, fresh)).toHaveLength(1);
  });

  it('keeps known sign-ins while the database is unavailable and refuses all others', async () => {
    let isAway = false;
    const away = async () => Promise.reject(Object.assign(new Error('away')));
    const whole = store();
    const server = await start({
      store: {
        read: (query, input) => (isAway ? away() : whole.read(query, input)),
        write: (command, input) => (isAway ? away() : whole.write(command, input)),
        writeAlong: () => undefined,
      },
    });
    const [known, unused] = [await server.signIn(), await server.signIn()];
    expect((await get(server, '/api/status', known)).status).toBe(200);
    isAway = true;
    expect((await get(server, '/api/status', known)).status).toBe(200);
    const refused = await get(server, '/api/status', unused);
    expect([refused.status, JSON.parse(refused.body).error.code]).toEqual([503, 'store_unavailable']);
    // A sign-out that can't be stored takes effect here immediately, and everywhere as soon as it can be.
    expect((await post(server, '/api/sign-out', { cookie: known })).status).not.toBe(204);
    expect((await get(server, '/api/status', known)).status).toBe(503);
    isAway = false;
    expect((await get(server, '/api/status', known)).status).toBe(401);
  });

  it('locks a guesser out across restarts, by the address that a trusted proxy names', async () => {
    const guess = (at: RunningServer, from: string, value = 'wrong') =>
      send({
        port: at.port,
        path: '/api/status',
        headers: { authorization: `Bearer ${value}`, 'x-forwarded-for': from },
      });
    const behind = { trustedProxies: ['127.0.0.0/8'] };
    const first = await start(behind);
    for (let i = 0; i < 10; i++) expect((await guess(first, `spoofed, 192.0.2.7`)).status).toBe(401);
    expect((await guess(first, '192.0.2.7')).status).toBe(429);
    expect((await guess(first, '192.0.2.8')).status).toBe(401);
    expect((await guess(first, '2001:db8::1')).status).toBe(401);
    await first.server.close();
    const second = await start(behind);
    expect((await guess(second, '192.0.2.7')).status).toBe(429);
    expect((await guess(second, '192.0.2.7', token)).status).toBe(200);
    // Without a trusted proxy no claim about an address counts.
    const third = await start();
    for (let i = 0; i < 10; i++) expect((await guess(third, `192.0.2.${i}`)).status).toBe(401);
    expect((await guess(third, '192.0.2.200')).status).toBe(429);
  });

  async function another() {
    const opened = await beside.open();
    closers.push(opened.close);
    return opened;
  }
});

it.each([
  ['Firefox on Linux', firefox],
  [
    'Safari on iPhone',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 (KHTML) Version/18 Mobile Safari/604',
  ],
  ['Edge on Windows', 'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537 (KHTML) Chrome/140 Safari/537 Edg/140'],
  ['Unknown browser', undefined],
  ['Unknown browser', '\u202e\u0007'],
  ['x'.repeat(60), 'x'.repeat(100_000)],
])('reads browser and system from the user agent: %s', (shown, userAgent) => {
  expect(describeBrowser(userAgent)).toBe(shown);
});
