import { once } from 'node:events';
import { connect } from 'node:net';
import type { NetworkInterfaceInfo } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { channelId } from '#contracts/ids.ts';
import { ownAddresses, phoneAddress } from '../../src/server/http-server.ts';
import { isLong } from '../support/long-run.ts';
import { aServer, pathOf, type RunningServer, send } from './a-server.ts';
import { hostileHosts, hostileOrigins } from './hostile-addresses.ts';

/** Routes in addition to those of the API's own description: undocumented ones, and ones for parts not present here. */
const otherRoutes = [
  ...['/', '/openapi.json', '/page/main.js', '/signin?code=x', '/unknown', '/channels/post/chat'],
  ...['/api/notices', '/api/why?id=x', '/api/outbox', '/api/agent/wait?runId=x', 'POST /api/agent'],
  ...['POST /api/reload', 'POST /api/notices/dismiss', 'POST /api/notices/answer', 'POST /api/outbox/retry'],
  ...['POST /api/outbox/discard', 'POST /uploads/post', 'POST /uploads/post/drop'],
];

describe('host and origin', () => {
  let running: RunningServer;
  let cookie: string;
  let routes: readonly string[];
  let opened = 0;
  beforeAll(async () => {
    running = await aServer({ allowedHosts: ['parley.home:8443'] });
    cookie = await running.signIn();
    routes = [...otherRoutes, ...(await describedRoutes(running, cookie))];
    running.server.routesFor(channelId('post')).socket('chat', (socket) => {
      opened += 1;
      socket.send('data');
    });
  });
  afterAll(() => running.server.close());

  const refusal =
    /^\{"error":\{"code":"(?:host_not_allowed","text":"Parley doesn't answer to .*|origin_not_allowed")\}\}$/;

  /** Returns the routes to request for the nth form: all in the long run, otherwise four, with others for the next. */
  const routesFor = (n: number) =>
    isLong ? routes : Array.from({ length: 4 }, (_, k) => routes[(n * 4 + k) % routes.length] ?? '/');

  const ask = (route: string, headers: Record<string, string>) => {
    const [path = '', method = 'GET'] = route.split(' ').reverse();
    const change = { 'content-type': 'application/json', 'x-parley': '1' };
    const form = { port: running.port, path, headers: { ...headers, cookie } };
    if (method === 'GET') return send(form);
    return send({ ...form, method, headers: { ...form.headers, ...change }, body: '{}' });
  };

  const refusesAll = async (header: string, forms: readonly string[], status: number) => {
    expect(new Set(forms).size).toBe(60);
    for (const [n, form] of forms.entries()) {
      for (const route of routesFor(n)) {
        const answer = await ask(route, { [header]: form });
        expect([answer.status, form, route]).toEqual([status, form, route]);
        expect(answer.body).toMatch(refusal);
      }
    }
    // None of it had an effect: nobody is signed out.
    expect((await ask('/api/status', {})).status).toBe(200);
  };

  it('refuses any other spelling of its host, on every route', { timeout: 300_000 }, () =>
    refusesAll('host', hostileHosts(running.port), 421),
  );

  it('gives other origins nothing, on every route, even with a session', { timeout: 300_000 }, () =>
    refusesAll('origin', hostileOrigins(running.port), 403),
  );

  it('ignores case in its own and configured names', async () => {
    for (const host of [`LocalHost:${running.port}`, 'Parley.HOME:8443']) {
      const answer = await ask('/api/status', { host, origin: `http://${host.toLowerCase()}` });
      expect([answer.status, host]).toEqual([200, host]);
    }
  });

  it('opens no socket for another host or origin, or for a cookie without an origin', async () => {
    const own = running.url;
    const cases = [
      ...hostileOrigins(running.port).map((origin) => ({ origin, cookie })),
      ...hostileHosts(running.port).map((host) => ({ host, origin: own, cookie })),
      ...hostileHosts(running.port).map((host) => ({ host, origin: `http://${host}`, cookie })),
      { cookie },
      { origin: own },
      { origin: own, cookie, 'sec-fetch-site': 'same-site' },
      { authorization: 'Bearer wrong' },
    ];
    for (const headers of cases) {
      expect([await upgrade(running.port, headers), headers]).not.toEqual([101, headers]);
    }
    expect(opened).toBe(0);
  });

  it('opens a socket for its own page and for a bearer token', async () => {
    const path = '/channels/post/chat';
    expect(await upgrade(running.port, { origin: running.url, cookie }, path)).toBe(101);
    expect(await upgrade(running.port, { authorization: `Bearer ${running.token}` }, path)).toBe(101);
    expect(opened).toBe(2);
  });

  it('upgrades no other route', async () => {
    for (const path of ['/', '/api/status', '/healthz', '/channels/post', '/unknown']) {
      expect(await upgrade(running.port, { origin: running.url, cookie }, path)).toBe(404);
    }
  });

  it("answers as usual if a client offers another protocol, as Java's does with each request", async () => {
    const offer = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAEAAEAA' };
    const headers = { ...offer, authorization: `Bearer ${running.token}` };
    expect((await send({ port: running.port, path: '/api/status', headers })).status).toBe(200);
    const signOut = { port: running.port, method: 'POST', path: '/api/sign-out', body: '{}' };
    const change = { ...headers, 'content-type': 'application/json', 'x-parley': '1' };
    expect((await send({ ...signOut, headers: change })).status).toBe(204);
    expect((await send({ ...signOut, headers: { ...change, authorization: 'Bearer wrong' } })).status).toBe(
      401,
    );
  });

  it('accepts a configured host, over https, too', async () => {
    const host = 'parley.home:8443';
    const get = (origin: string) =>
      send({ port: running.port, path: '/api/status', headers: { host, origin, cookie } });
    expect((await get('https://parley.home:8443')).status).toBe(200);
    expect((await get(`http://127.0.0.1:${running.port}`)).status).toBe(403);
  });

  it('tells a person who uses an unknown name what to configure', async () => {
    const get = (host: string) =>
      send({ port: running.port, path: '/', headers: { host, accept: 'text/html,*/*' } });
    const named = await get('parley.lan:7411');
    expect(named.status).toBe(421);
    expect(named.headers['content-type']).toMatch(/^text\/plain/);
    expect(named.body).toMatch(
      /^Parley doesn't answer to the name "parley\.lan:7411"\. .*"allowedHosts": \["parley\.lan:7411"\]/,
    );
    const odd = await get(`a"<script>`);
    expect(odd.body).toContain('this name');
    expect(odd.body).not.toContain('script');
  });

  it('changes state only by a JSON post with the header and an origin', async () => {
    const full = { origin: running.url, cookie, 'content-type': 'application/json', 'x-parley': '1' };
    const without = (name: keyof typeof full) => {
      const { [name]: _left, ...rest } = full;
      return rest;
    };
    const post = (headers: Record<string, string>) =>
      send({ port: running.port, path: '/api/sign-out', method: 'POST', headers, body: '{}' });
    expect((await post(without('origin'))).status).toBe(403);
    expect((await post(without('x-parley'))).status).toBe(403);
    expect((await post(without('content-type'))).status).toBe(415);
    expect((await post({ ...full, 'content-type': 'text/plain' })).status).toBe(415);
    expect((await post({ ...full, 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await post(without('cookie'))).status).toBe(401);
    const stillIn = await send({ port: running.port, path: '/api/status', headers: { cookie } });
    expect(stillIn.status).toBe(200);
  });

  it('ignores forwarded headers', async () => {
    const answer = await send({
      port: running.port,
      path: '/api/status',
      headers: { host: 'evil.example', 'x-forwarded-host': `127.0.0.1:${running.port}`, cookie },
    });
    expect(answer.status).toBe(421);
  });

  it('sends strict headers with every response, including refusals', async () => {
    for (const path of ['/', '/api/status', '/unknown', '/page/main.js']) {
      const { headers } = await send({ port: running.port, path });
      expect(headers['content-security-policy']).toContain("default-src 'none'");
      expect(headers['content-security-policy']).not.toContain('unsafe');
      expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['access-control-allow-origin']).toBeUndefined();
    }
  });

  it('serves only the files on its list', async () => {
    for (const path of [
      '/page/',
      '/page/../http-server.ts',
      '/page/%2e%2e/gate.ts',
      '/page/..%2fgate.ts',
      '/vendor/../../../package.json',
      '/vendor/preact.mjs',
    ]) {
      const { status } = await send({ port: running.port, path, headers: { cookie } });
      expect([status, path]).toEqual([404, path]);
    }
  });
});

describe('open sockets', () => {
  it('closes sockets with their session and with the server, even if the client does not answer', async () => {
    const running = await aServer();
    running.server.routesFor(channelId('post')).socket('chat', () => undefined);
    const cookie = await running.signIn();
    const other = await running.signIn();
    const [revoked, kept] = await Promise.all([open(running, cookie), open(running, other)]);
    const headers = { origin: running.url, cookie, 'content-type': 'application/json', 'x-parley': '1' };
    const revokedEnds = once(revoked, 'close');
    await send({ port: running.port, path: '/api/sign-out', method: 'POST', headers, body: '{}' });
    await revokedEnds;
    expect(kept.readyState).toBe(WebSocket.OPEN);
    // A client that never answers a close is disconnected by force.
    kept.pause();
    await running.server.close();
    kept.terminate();
  });
});

function open(running: RunningServer, cookie: string): Promise<WebSocket> {
  const socket = new WebSocket(`${running.url.replace('http', 'ws')}/channels/post/chat`, {
    headers: { cookie, origin: running.url },
  });
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(socket));
    socket.on('error', reject);
  });
}

async function describedRoutes({ port }: RunningServer, cookie: string): Promise<readonly string[]> {
  const { body } = await send({ port, path: '/openapi.json', headers: { cookie } });
  const { paths } = JSON.parse(body) as { readonly paths: Readonly<Record<string, object>> };
  return Object.entries(paths).flatMap(([path, calls]) =>
    Object.keys(calls).map((method) => `${method.toUpperCase()} ${path.replaceAll(/[{}]/g, '')}`),
  );
}

/** Returns the status of an upgrade request with exactly these headers. */
function upgrade(
  port: number,
  headers: Record<string, string>,
  path = '/channels/post/chat',
): Promise<number> {
  const lines = Object.entries({
    host: `127.0.0.1:${port}`,
    upgrade: 'websocket',
    connection: 'Upgrade',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`),
    );
    socket.once('data', (data) => {
      resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(data.toString())?.[1]));
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

describe('a server open to other machines', () => {
  const own = () => ownAddresses('0.0.0.0')[0] ?? '127.0.0.1';

  it("accepts the machine's own addresses at its port, over http only", async () => {
    const running = await aServer({ host: '0.0.0.0' });
    const cookie = await running.signIn();
    const host = `${own()}:${running.port}`;
    const get = (headers: Record<string, string>) =>
      send({ port: running.port, path: '/api/status', headers: { ...headers, cookie } });
    expect((await get({ host, origin: `http://${host}` })).status).toBe(200);
    expect((await get({ host, origin: `https://${host}` })).status).toBe(403);
    expect((await get({ host: `rebind.example:${running.port}` })).status).toBe(421);
    await running.server.close();
  });

  it('accepts a configured name without a port at every port', async () => {
    const running = await aServer({ allowedHosts: ['Parley.home'] });
    const get = (host: string) => send({ port: running.port, path: '/', headers: { host } });
    for (const host of ['parley.home', 'parley.home:443', `parley.home:${running.port}`])
      expect([(await get(host)).status, host]).toEqual([200, host]);
    for (const host of ['parley.home.', 'x.parley.home', 'parley.home:', 'parley.home:0', 'parley.home:1:2'])
      expect([(await get(host)).status, host]).toEqual([421, host]);
    await running.server.close();
  });

  it('marks the cookie Secure only if a trusted proxy reports TLS', async () => {
    const cookieOf = async (deps: Parameters<typeof aServer>[0], headers: Record<string, string>) => {
      const running = await aServer(deps);
      const path = pathOf(running.server.signInLink());
      const answer = await send({ port: running.port, path, headers });
      await running.server.close();
      return String(answer.headers['set-cookie']);
    };
    const forwarded = { 'x-forwarded-proto': 'https' };
    expect(await cookieOf({ trustedProxies: ['127.0.0.1'] }, forwarded)).toContain('Secure');
    expect(await cookieOf({ trustedProxies: ['127.0.0.1'] }, {})).not.toContain('Secure');
    expect(await cookieOf({ trustedProxies: ['10.0.0.0/8'] }, forwarded)).not.toContain('Secure');
    expect(await cookieOf({}, forwarded)).not.toContain('Secure');
  });

  it('names the address that a phone can use, and no other', () => {
    const one = (address: string, internal = false, family: 'IPv4' | 'IPv6' = 'IPv4') =>
      ({ address, internal, family, netmask: '', mac: '', cidr: null, scopeid: 0 }) as NetworkInterfaceInfo;
    const interfaces = () => ({
      lo: [one('127.0.0.1', true)],
      docker0: [one('172.17.0.1')],
      tun0: [one('100.64.0.7')],
      eth0: [one('fe80::1', false, 'IPv6'), one('169.254.3.4'), one('192.168.1.5')],
    });
    const machine = { interfaces, isContainer: () => false };
    expect(phoneAddress('0.0.0.0', 7411, machine)).toBe('http://192.168.1.5:7411');
    expect(phoneAddress('127.0.0.1', 7411, machine)).toBeUndefined();
    expect(phoneAddress('192.168.1.9', 80, machine)).toBe('http://192.168.1.9:80');
    expect(phoneAddress('0.0.0.0', 7411, { ...machine, isContainer: () => true })).toBeUndefined();
    expect(ownAddresses('::', interfaces)).toContain('[fe80::1]');
    expect(ownAddresses('127.0.0.1', interfaces)).toEqual([]);
  });
});
