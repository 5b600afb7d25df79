import { afterEach, expect, it } from 'vitest';
import type { LanesRequest, OwnerLanes } from '../../src/server/lane-routes.ts';
import type { OwnerQueue, QueueChange } from '../../src/server/queue-routes.ts';
import type { LanePlace } from '../../src/store/reads/read-live-lanes.ts';
import { aServer, type RunningServer, send } from './a-server.ts';

const running: RunningServer[] = [];
afterEach(async () => {
  for (const { server } of running.splice(0)) await server.close();
});

/** A server whose lanes and queue record the requests they get. */
async function aLaneServer(over: Partial<OwnerLanes> = {}) {
  const asked: unknown[] = [];
  const next: LanePlace = { group: 'idle', key: 'main:a:b:dm:c' };
  const lanes: OwnerLanes = {
    list: async (request) => {
      asked.push(request);
      return { lanes: [], next, version: 7 };
    },
    setMode: async (key, mode) => {
      asked.push([key, mode]);
      return key !== 'gone';
    },
    ...over,
  };
  const change = (id: string, words: readonly string[]): QueueChange => {
    asked.push([id, ...words]);
    if (id === 'gone') return { kind: 'not-found' };
    if (id === 'late') return { kind: 'not-possible', text: 'It waits no more.' };
    return { kind: 'done', item: { id, laneKey: 'l', number: 1, text: words.join(' ') } };
  };
  const queue: OwnerQueue = {
    waiting: async () => [],
    change: async (verb, id) => change(id, [verb]),
    edit: async (id, text) => change(id, ['edit', text]),
    textOf: async (id) => (id === 'gone' ? undefined : `text of ${id}`),
  };
  const server = await aServer({ lanes, queue });
  running.push(server);
  const cookie = await server.signIn();
  const { port, url } = server;
  const form = { origin: url, 'content-type': 'application/json', 'x-parley': '1' };
  const answerOf = async (answer: ReturnType<typeof send>) => {
    const { status, body } = await answer;
    return { status, body: JSON.parse(body) as unknown };
  };
  const post = (path: string, body: object, headers: Record<string, string> = { ...form, cookie }) =>
    answerOf(send({ port, path, method: 'POST', headers, body: JSON.stringify(body) }));
  return {
    ...{ asked, port, form, cookie, post },
    get: (path: string) => answerOf(send({ port, path, headers: { cookie } })),
  };
}

it('serves lanes page by page to signed-in clients only', async () => {
  const { asked, port, get, post, form } = await aLaneServer();
  expect(await get('/api/lanes')).toEqual({
    status: 200,
    body: { lanes: [], next: 'idle:main:a:b:dm:c', version: 7 },
  });
  await get('/api/lanes?after=idle:main:a:b:dm:c&since=7&waitMs=100');
  expect(asked).toEqual([
    { waitMs: 0 },
    { after: { group: 'idle', key: 'main:a:b:dm:c' }, since: 7, waitMs: 100 },
  ]);
  for (const wrong of ['after=main', 'since=x', 'waitMs=30001', 'waitMs=-1'])
    expect((await get(`/api/lanes?${wrong}`)).status).toBe(400);
  expect((await send({ port, path: '/api/lanes' })).status).toBe(401);
  for (const path of ['/api/queue/cancel', '/api/queue/promote', '/api/queue/edit', '/api/lanes/mode'])
    expect([path, (await post(path, {}, form)).status]).toEqual([path, 401]);
  expect(asked).toHaveLength(2);
});

it('changes waiting messages and reports the result; malformed requests have no effect', async () => {
  const { asked, get, post } = await aLaneServer();
  expect(await post('/api/queue/edit', { id: 'a', text: ' new\u0000 ' })).toEqual({
    status: 200,
    body: { id: 'a', laneKey: 'l', number: 1, text: 'edit new\ufffd' },
  });
  expect(await post('/api/queue/promote', { id: 'late' })).toEqual({
    status: 409,
    body: { error: { code: 'not_possible', text: 'It waits no more.' } },
  });
  expect((await post('/api/lanes/mode', { lane: 'l', mode: 'collect' })).status).toBe(200);
  expect(asked).toEqual([
    ['a', 'edit', 'new\ufffd'],
    ['late', 'promote'],
    ['l', 'collect'],
  ]);
  expect((await get('/api/queue/text?id=a')).body).toEqual({ text: 'text of a' });

  for (const [path, body] of [
    ['/api/queue/cancel', { id: 'gone' }],
    ['/api/queue/edit', { id: 'gone', text: 'x' }],
    ['/api/lanes/mode', { lane: 'gone', mode: 'steer' }],
  ] as const)
    expect((await post(path, body)).status).toBe(404);
  expect((await get('/api/queue/text?id=gone')).status).toBe(404);

  asked.length = 0;
  for (const [path, body] of [
    ['/api/queue/edit', { id: 'a', text: '   ' }],
    ['/api/queue/edit', { id: 'a', text: 'x'.repeat(32_001) }],
    ['/api/queue/promote', { id: 'a', all: true }],
    ['/api/lanes/mode', { lane: 'l', mode: 'reset' }],
  ] as const)
    expect((await post(path, body)).status).toBe(400);
  expect(asked).toEqual([]);
});

it('ends the wait of a client that disconnects', async () => {
  const waiting = Promise.withResolvers<void>();
  const over = Promise.withResolvers<LanesRequest>();
  const { port, cookie } = await aLaneServer({
    list: async (request, signal) => {
      waiting.resolve();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      over.resolve(request);
      return { lanes: [], version: 1 };
    },
  });
  const gone = new AbortController();
  const asking = fetch(`http://127.0.0.1:${port}/api/lanes?since=1&waitMs=30000`, {
    headers: { cookie },
    signal: gone.signal,
  });
  asking.catch(() => undefined);
  await waiting.promise;
  gone.abort();
  expect(await over.promise).toEqual({ since: 1, waitMs: 30_000 });
});
