import { afterEach, expect, it } from 'vitest';
import type { LaneChanges } from '../../src/operations/lanes.ts';
import type { LanePlace } from '../../src/store/reads/read-live-lanes.ts';
import { lazyStore } from '../support/lazy-store.ts';
import { scriptedStore } from '../support/scripted-store.ts';
import { someOperations } from '../support/some-operations.ts';
import { aServer, type RunningServer, send } from './a-server.ts';

const running: RunningServer[] = [];
afterEach(async () => {
  for (const { server } of running.splice(0)) await server.close();
});

type Asked = { readonly id: string };

/** A server whose store records the changes and the pages of lanes that it is asked for. */
async function aLaneServer(changes?: LaneChanges) {
  const asked: unknown[] = [];
  const next: LanePlace = { group: 'idle', key: 'main:a:b:dm:c' };
  const changed = (kind: string) => (input: { readonly laneKey: string; readonly text?: string }) => {
    const { laneKey, text } = input;
    asked.push([laneKey, kind, ...(text === undefined ? [] : [text])]);
    const isLate = laneKey === 'lane of late';
    const result = isLate ? { kind: 'ended', outcome: 'cancelled' } : { kind: 'done', excerpt: kind };
    return { changed: result, effects: {} };
  };
  const store = scriptedStore(lazyStore(), {
    readLiveLanes: ({ after }: { readonly after?: LanePlace }) => {
      asked.push({ after });
      return { lanes: [], next };
    },
    setLaneMode: ({ laneKey, mode }: { readonly laneKey: string; readonly mode: string }) => {
      asked.push([laneKey, mode]);
      return laneKey !== 'gone';
    },
    findQueuedItem: ({ id }: Asked) =>
      id === 'gone' ? { kind: 'none' } : { kind: 'found', id, laneKey: `lane of ${id}`, number: 1 },
    readAuthor: () => ({ id: 'ann', name: 'ann', chatKind: 'dm' }),
    readItemText: ({ id }: Asked) => (id === 'gone' ? undefined : `text of ${id}`),
    cancelItem: changed('cancel'),
    promoteItem: changed('promote'),
    editItem: changed('edit'),
  });
  const lanes = changes && { lanes: { changes, leaseMs: 1 } };
  const server = await aServer({ store, operations: someOperations(lanes) });
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
  expect(asked).toEqual([{ after: undefined }, { after: { group: 'idle', key: 'main:a:b:dm:c' } }]);
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
    body: { id: 'a', laneKey: 'lane of a', number: 1, excerpt: 'edit', text: '#1 now reads: “edit”' },
  });
  expect(await post('/api/queue/promote', { id: 'late' })).toEqual({
    status: 409,
    body: { error: { code: 'not_possible', text: '#1 is no longer waiting: cancelled.' } },
  });
  expect((await post('/api/lanes/mode', { lane: 'l', mode: 'collect' })).status).toBe(200);
  expect(asked).toEqual([
    ['lane of a', 'edit', 'new\ufffd'],
    ['lane of late', 'promote'],
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
  const over = Promise.withResolvers<unknown>();
  const { port, cookie } = await aLaneServer({
    current: () => 1,
    waitAfter: async (since, waitMs, signal) => {
      waiting.resolve();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      over.resolve({ since, waitMs });
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
