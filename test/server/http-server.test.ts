import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { channelId } from '#contracts/ids.ts';
import { createHttpServer } from '../../src/server/http-server.ts';
import { lazyStore } from '../support/lazy-store.ts';
import { patienceMs } from '../support/patience.ts';
import { silentLog } from '../support/silent-log.ts';
import { someOperations } from '../support/some-operations.ts';
import { aServer, pathOf, type RunningServer, send } from './a-server.ts';

describe('http server', () => {
  let running: RunningServer | undefined;
  const start = async (deps: Parameters<typeof aServer>[0] = {}) => {
    running = await aServer(deps);
    return running;
  };
  afterEach(async () => {
    await running?.server.close();
    running = undefined;
  });

  it('reports that the process lives and what is missing until it is ready', async () => {
    let missing = ['store'];
    const { port } = await start({ readiness: async () => ({ missing }) });
    expect((await send({ port, path: '/healthz' })).status).toBe(200);
    const notReady = await send({ port, path: '/readyz' });
    expect(notReady.status).toBe(503);
    expect(JSON.parse(notReady.body)).toEqual({ status: 'not ready', missing: ['store'] });
    missing = [];
    expect((await send({ port, path: '/readyz' })).status).toBe(200);
  });

  it('lets the signed-in owner see and dismiss alerts and answer questions', async () => {
    const notice = { id: 'n1', kind: 'lane-stuck', text: 'stuck', count: 1, since: 1, lastAt: 1 } as const;
    const choices = [{ verdict: 'approve', label: 'Approve' }] as const;
    const question = { id: 'q1', text: 'Eve asks', since: 1, choices };
    const dismissed: string[] = [];
    const { port, token } = await start({
      operations: someOperations({
        owner: {
          shown: async () => [notice],
          dismiss: async (id) => {
            dismissed.push(id);
            return id === notice.id;
          },
          questions: async () => [question],
          answer: async (id, verdict) => {
            dismissed.push(`${verdict} ${id}`);
            return { result: 'late', text: 'Already approved.' };
          },
        },
      }),
    });
    const authorization = `Bearer ${token}`;
    const signedIn = { authorization, 'x-parley': '1' };
    const dismiss = (body: string, headers: Record<string, string> = signedIn, step = 'dismiss') =>
      send({
        port,
        path: `/api/notices/${step}`,
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body,
      });
    expect((await send({ port, path: '/api/notices' })).status).toBe(401);
    expect((await dismiss('{"id":"n1"}', { 'x-parley': '1' })).status).toBe(401);
    expect((await dismiss('{"id":"n1"}', { authorization })).status).toBe(403);
    expect(dismissed).toEqual([]);
    const shown = await send({ port, path: '/api/notices', headers: { authorization } });
    expect(JSON.parse(shown.body)).toEqual({ notices: [notice], questions: [question] });
    expect((await dismiss('{"id":"n1"}')).status).toBe(200);
    expect((await dismiss('{"id":"n2"}')).status).toBe(404);
    expect((await dismiss('{"id":7}')).status).toBe(400);
    const yes = '{"id":"q1","verdict":"approve"}';
    expect((await dismiss(yes, { 'x-parley': '1' }, 'answer')).status).toBe(401);
    expect(JSON.parse((await dismiss(yes, signedIn, 'answer')).body)).toMatchObject({ result: 'late' });
    expect((await dismiss('{"id":"q1","verdict":"maybe"}', signedIn, 'answer')).status).toBe(400);
    expect(dismissed).toEqual(['n1', 'n2', 'approve q1']);
  });

  it('gives status, conversations and metrics only to signed-in clients', async () => {
    const { port, token, signIn } = await start();
    for (const path of ['/api/status', '/api/sessions', '/metrics', '/unknown']) {
      const refused = await send({ port, path });
      expect(refused.status).toBe(401);
      expect(refused.body).toBe('{"error":{"code":"sign_in_first"}}');
    }
    const byToken = await send({ port, path: '/api/status', headers: { authorization: `Bearer ${token}` } });
    expect(JSON.parse(byToken.body)).toMatchObject({ model: { isDemo: true } });
    expect(byToken.headers['cache-control']).toBe('no-store');
    const cookie = await signIn();
    expect((await send({ port, path: '/metrics', headers: { cookie } })).body).toContain('parley_up 1');
    expect((await send({ port, path: '/api/sessions', headers: { cookie } })).body).toBe('{"sessions":[]}');
  });

  it('signs in one browser per link without secrets in the address or the cookie', async () => {
    const { port, server, token } = await start();
    const path = pathOf(server.signInLink());
    const first = await send({ port, path });
    expect(first.status).toBe(303);
    expect(first.headers.location).toBe('/');
    const cookie = String(first.headers['set-cookie']);
    expect(cookie).toMatch(/HttpOnly; SameSite=Strict/);
    expect(cookie).not.toContain(token);
    const second = await send({ port, path });
    expect(second.headers['set-cookie']).toBeUndefined();
    expect(second.headers.location).toBe('/#link-not-valid');
  });

  it('expires a link after fifteen minutes', async () => {
    let now = 1_000_000;
    const { port, server } = await start({ clock: { now: () => now, wait: async () => undefined } });
    const path = pathOf(server.signInLink());
    now += 15 * 60_000;
    expect((await send({ port, path })).headers['set-cookie']).toBeUndefined();
  });

  it("refuses cookies that are forged, expired or another token's", async () => {
    let now = 1_000_000;
    const store = lazyStore();
    const clock = { now: () => now, wait: async () => undefined };
    const { port, signIn, server } = await start({ clock, store });
    const cookie = await signIn();
    const statusAt = async (at: number, value: string) =>
      (await send({ port: at, path: '/api/status', headers: { cookie: value } })).status;
    expect(await statusAt(port, cookie)).toBe(200);
    const [name = '', value = ''] = cookie.split('=');
    for (const forged of ['', value.slice(1), `${value}x`, value.toLowerCase(), 'undefined', '..', '%00']) {
      expect([forged, await statusAt(port, `${name}=${forged}`)]).toEqual([forged, 401]);
    }
    const other = await aServer({ clock, store });
    expect(await statusAt(other.port, `parley-${other.port}=${value}`)).toBe(401);
    await other.server.close();
    now += 31 * 24 * 60 * 60_000;
    expect(await statusAt(port, cookie)).toBe(401);
    await server.close();
    await store.close();
  });

  it('signs in with a typed token and out again for good', async () => {
    const { port, url, token } = await start();
    const headers = { origin: url, 'content-type': 'application/json', 'x-parley': '1' };
    const path = '/api/sign-in';
    const wrong = await send({ port, path, method: 'POST', headers, body: '{"token":"guess"}' });
    expect(wrong.status).toBe(401);
    const right = await send({ port, path, method: 'POST', headers, body: JSON.stringify({ token }) });
    expect(right.status).toBe(204);
    const cookie = String(right.headers['set-cookie']).split(';')[0] ?? '';
    const out = await send({
      port,
      path: '/api/sign-out',
      method: 'POST',
      headers: { ...headers, cookie },
      body: '{}',
    });
    expect(out.status).toBe(204);
    expect((await send({ port, path: '/api/status', headers: { cookie } })).status).toBe(401);
  });

  it('locks an address out after ten wrong tokens, even concurrent ones, but never the right one', async () => {
    let now = 1_000_000;
    const { port, url, token } = await start({ clock: { now: () => now, wait: async () => undefined } });
    const tryToken = (value: string) =>
      send({ port, path: '/api/status', headers: { authorization: `Bearer ${value}` } });
    const type = (value: string) =>
      send({
        port,
        path: '/api/sign-in',
        method: 'POST',
        headers: { origin: url, 'content-type': 'application/json', 'x-parley': '1' },
        body: JSON.stringify({ token: value }),
      });
    const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => tryToken(`wrong-${i}`)));
    expect(answers.filter((answer) => answer.status === 401)).toHaveLength(10);
    expect(answers.filter((answer) => answer.status === 429)).toHaveLength(90);
    expect((await tryToken(token)).status).toBe(200);
    expect((await type(token)).status).toBe(204);
    now += 20_000;
    const limited = await type('wrong');
    expect([limited.status, limited.headers['retry-after']]).toEqual([429, '40']);
    now += 40_000;
    expect((await tryToken('wrong')).status).toBe(401);
  });

  it('refuses a weak or placeholder token at once', () => {
    for (const token of ['', 'undefined', 'changeme', 'password', 'x'.repeat(40), 'short-but-random-1']) {
      expect(() =>
        createHttpServer({
          host: '127.0.0.1',
          port: 0,
          token,
          store: lazyStore(),
          log: silentLog,
          readiness: async () => ({ missing: [] }),
          status: () => Promise.reject(new Error('unused')),
          operations: someOperations(),
        }),
      ).toThrow(/PARLEY_TOKEN/);
    }
  });

  it('refuses too large a body before parsing it, and prototype keys', async () => {
    const { port, url } = await start();
    const headers = { origin: url, 'content-type': 'application/json', 'x-parley': '1' };
    const post = (body: string) => send({ port, path: '/api/sign-in', method: 'POST', headers, body });
    expect((await post(`{"token":"${'x'.repeat(70_000)}"}`)).status).toBe(413);
    expect((await post('{"__proto__":{"isAdmin":true},"token":"x"}')).status).toBe(400);
    expect((await post('{"token":')).status).toBe(400);
    expect(Object.hasOwn(Object.prototype, 'isAdmin')).toBe(false);
  });

  it('answers an internal error without details', async () => {
    const { port, token } = await start({
      status: () => Promise.reject(new Error('secret at /home/owner/data.sqlite')),
    });
    const answer = await send({ port, path: '/api/status', headers: { authorization: `Bearer ${token}` } });
    expect(answer.status).toBe(500);
    expect(answer.body).toBe('{"error":{"code":"internal"}}');
  });

  it('passes a webhook its path, headers and raw body, and limits the body', async () => {
    const { port, server } = await start();
    const seen: string[] = [];
    server.routesFor(channelId('post')).webhook('webhook', async (request) => {
      const body = request.body && Buffer.from(request.body).toString();
      seen.push(`${request.params}|${request.headers['x-sign']}|${body}`);
      return { status: request.params === 'right' ? 201 : 403 };
    });
    const post = (path: string, body: string) =>
      send({
        port,
        path,
        method: 'POST',
        headers: { 'x-sign': 's', 'content-type': 'application/json' },
        body,
      });
    expect((await post('/channels/post/webhook/right', '{"a":')).status).toBe(201);
    expect((await post('/channels/post/webhook/wrong', '')).status).toBe(403);
    expect((await post('/channels/post/other', '{}')).status).toBe(404);
    expect((await post('/channels/post/webhook/right', 'x'.repeat(1_100_000))).status).toBe(413);
    expect(seen).toEqual(['right|s|{"a":', 'wrong|s|', 'right|s|undefined']);
  });

  it('reads no body from a webhook caller without the secret', async () => {
    const { port, server } = await start();
    const bodies: unknown[] = [];
    server.routesFor(channelId('post')).webhook(
      'webhook',
      async ({ body }) => {
        bodies.push(body);
        return { status: 201 };
      },
      ({ params, headers }) => params === 'right' && headers['x-sign'] === 's',
    );
    const begin = async (path: string, sign: string) => {
      const socket = connect(port, '127.0.0.1');
      const head = `host: x\r\nx-sign: ${sign}\r\ncontent-type: application/json\r\ncontent-length: 1000000`;
      socket.write(`POST /channels/post/webhook/${path} HTTP/1.1\r\n${head}\r\n\r\n{`);
      const [answer] = await once(socket, 'data', { signal: AbortSignal.timeout(patienceMs) });
      socket.destroy();
      return String(answer).slice(0, 12);
    };
    expect(await begin('wrong', 's')).toBe('HTTP/1.1 403');
    expect(await begin('right', 't')).toBe('HTTP/1.1 403');
    expect(bodies).toEqual([]);
    const headers = { 'content-type': 'application/json', 'x-sign': 's' };
    const path = '/channels/post/webhook/right';
    expect((await send({ port, path, method: 'POST', headers, body: '{}' })).status).toBe(201);
  });

  it('accepts webhook calls to any of its names, but none from a page', async () => {
    const { port, server } = await start();
    server.routesFor(channelId('post')).webhook('webhook', async () => ({ status: 201 }));
    const post = (headers: Record<string, string>) =>
      send({ port, path: '/channels/post/webhook/x', method: 'POST', headers, body: '{}' });
    const type = { 'content-type': 'application/json' };
    expect((await post({ ...type, host: 'parley:7411' })).status).toBe(201);
    expect((await post({ ...type, host: `127.0.0.1:${port}`, origin: 'http://parley:7411' })).status).toBe(
      403,
    );
    expect((await post({ ...type, host: 'parley:7411', origin: 'http://parley:7411' })).status).toBe(403);
    const page = await send({ port, path: '/channels/post/webhook/x', headers: { host: 'parley:7411' } });
    expect(page.status).toBe(421);
  });

  it('says which port is taken and what to do', async () => {
    const { port } = await start();
    await expect(aServer({ port })).rejects.toThrow(/another program uses that port.*PARLEY_PORT/);
  });
});
