import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { createHealthServer, type HealthServerDeps } from '../../src/server/health-server.ts';
import { readinessOf, readyAnswer } from '../../src/server/readiness.ts';
import { silentLog } from '../support/silent-log.ts';
import { send } from './a-server.ts';

const token = 'a-token-of-more-than-22-characters';

async function aHealthServer(deps: Partial<HealthServerDeps> = {}) {
  const server = createHealthServer({
    port: 0,
    log: silentLog,
    clock: systemClock,
    readiness: async () => ({ missing: [], components: [] }),
    metrics: async () => 'parley_up 1\n',
    token: async () => token,
    ...deps,
  });
  onTestFinished(server.close);
  const { url } = await server.listen();
  return { url, port: Number(new URL(url).port) };
}

describe('a process without a page', () => {
  it('reports that the process lives and what is missing until it is ready', async () => {
    let missing = ['redis'];
    const { port } = await aHealthServer({ readiness: async () => ({ missing, components: [] }) });
    expect((await send({ port, path: '/healthz' })).status).toBe(200);
    const notReady = await send({ port, path: '/readyz?verbose' });
    expect(notReady.status).toBe(503);
    expect(JSON.parse(notReady.body)).toEqual({ status: 'not ready', missing: ['redis'] });
    missing = [];
    expect((await send({ port, path: '/readyz' })).status).toBe(200);
    expect(await send({ port, path: '/readyz', method: 'HEAD' })).toMatchObject({ status: 200, body: '' });
  });

  it('gives metrics to holders of the token and limits guesses', async () => {
    const { port } = await aHealthServer();
    const ask = (authorization?: string) =>
      send({ port, path: '/metrics', headers: authorization === undefined ? {} : { authorization } });
    expect(await ask(`Bearer ${token}`)).toMatchObject({ status: 200, body: 'parley_up 1\n' });
    expect((await ask()).status).toBe(401);
    expect((await ask(`Basic ${token}`)).status).toBe(401);
    for (let tries = 0; tries < 10; tries++) expect((await ask(`Bearer wrong-${tries}`)).status).toBe(401);
    expect((await ask('Bearer wrong-again')).status).toBe(429);
  });

  it('accepts only its own host names, changes nothing and has no other route', async () => {
    const { port } = await aHealthServer();
    const ask = (path: string, headers: Record<string, string>, method = 'GET') =>
      send({ port, path, headers, method }).then(({ status }) => status);
    expect(await ask('/readyz', { host: 'rebound.example' })).toBe(421);
    expect(await ask('/readyz', { origin: 'http://elsewhere.example' })).toBe(403);
    expect(await ask('/healthz', {}, 'POST')).toBe(403);
    const change = { 'x-parley': '1', 'content-type': 'application/json', authorization: `Bearer ${token}` };
    expect(await ask('/healthz', change, 'POST')).toBe(404);
    for (const path of ['/', '/api/status', '/metrics/', '//healthz']) expect(await ask(path, {})).toBe(404);
  });

  it('uses a free port if the configured one is taken', async () => {
    const first = await aHealthServer();
    const second = await aHealthServer({ port: first.port });
    expect(second.port).not.toBe(first.port);
    expect((await send({ port: second.port, path: '/healthz' })).status).toBe(200);
  });

  it('survives invalid requests', async () => {
    const { port } = await aHealthServer();
    const socket = connect(port, '127.0.0.1');
    socket.end('\u0000\u0001 nonsense\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /);
    expect((await send({ port, path: '/healthz' })).status).toBe(200);
  });
});

describe('readiness', () => {
  const needed = ['store', 'redis'];
  const at = 1_790_000_000_000;

  it('names a channel that is down, since when, why and when it is retried', () => {
    const reason = 'Unauthorized';
    const state = {
      kind: 'trouble',
      problem: 'unauthorised',
      reason,
      since: at,
      nextTryAt: at + 60_000,
    } as const;
    const { missing, components } = readinessOf({ needed, problems: [] }, [{ id: 'telegram.work', state }]);
    expect(missing).toEqual(['telegram.work']);
    expect(components).toEqual([
      { name: 'store', state: 'ok' },
      { name: 'redis', state: 'ok' },
      {
        name: 'telegram.work',
        state: 'down',
        reason,
        since: '2026-09-21T14:13:20.000Z',
        nextTryAt: '2026-09-21T14:14:20.000Z',
      },
    ]);
  });

  it('reports all components on request, otherwise only those that are down', () => {
    const readiness = readinessOf({ needed, problems: [{ id: 'redis', text: 'away' }] }, []);
    const redis = { name: 'redis', state: 'down', reason: 'away' };
    expect(readyAnswer(readiness, '/readyz')).toEqual({
      code: 503,
      body: { status: 'not ready', missing: ['redis'], components: [redis] },
    });
    expect(readyAnswer(readiness, '/readyz?verbose').body.components).toEqual([
      { name: 'store', state: 'ok' },
      redis,
    ]);
    expect(readyAnswer(readinessOf({ needed, problems: [] }, []), '/readyz')).toEqual({
      code: 200,
      body: { status: 'ready' },
    });
  });

  it('does not wait for a channel that is off or received by another process', () => {
    const { missing, components } = readinessOf({ needed, problems: [{ id: 'redis', text: 'away' }] }, [
      { id: 'discord', state: { kind: 'off', reason: 'no token' } },
      { id: 'telegram', state: { kind: 'standby', reason: 'another process receives' } },
      { id: 'web', state: { kind: 'on', account: 'web' } },
      { id: 'signal', state: { kind: 'starting' } },
    ]);
    expect(missing).toEqual(['redis', 'signal']);
    expect(components?.map(({ name }) => name)).toEqual(['store', 'redis', 'telegram', 'web', 'signal']);
  });
});
