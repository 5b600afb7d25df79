import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { type ListedOperation, operations } from '../../src/operations/list.ts';
import { refusalStatus } from '../../src/server/api-call.ts';
import { publishAddress } from '../cli/publish-address.ts';
import { aServer, send } from '../server/a-server.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aBot } from '../store/access-builders.ts';
import { aStore } from '../support/own-store.ts';
import { someOperations } from '../support/some-operations.ts';

const token = 'q7Zr2mXk9vTb4NwLs8Jd1HfG';

/** For each operation that a command runs, its words. The operations of a gateway's own parts run in no other process. */
const commands: Readonly<Record<string, readonly string[]>> = {
  why: ['why', '45', '--text'],
  queue: ['queue', 'list'],
  'queue/cancel': ['queue', 'cancel', 'abc'],
  'queue/promote': ['queue', 'promote', 'abc'],
  'queue/edit': ['queue', 'edit', 'abc', 'other words'],
  outbox: ['outbox', 'list'],
  'outbox/retry': ['outbox', 'retry', 'run:1'],
  'outbox/drop': ['outbox', 'drop', 'run:1'],
  sessions: ['sessions', 'list'],
  'sessions/show': ['sessions', 'show', 'abc'],
  pair: ['pair', 'list'],
  'pair/approve': ['pair', 'approve', 'ABCD2345'],
  'pair/revoke': ['pair', 'revoke', 'test:1'],
  approvals: ['approvals', 'list'],
  'approvals/answer': ['approvals', 'approve', 'abc'],
  'approvals/revoke': ['approvals', 'revoke', 'abc'],
  links: ['link', 'list'],
  'links/remove': ['link', 'remove', 'test:1'],
  bindings: ['agents', 'bindings'],
  'bindings/remove': ['agents', 'unbind', 'test/bot/-1', '5'],
  subagents: ['subagents', 'list'],
  'subagents/info': ['subagents', 'info', 'abc'],
  'subagents/log': ['subagents', 'log', 'abc'],
  'subagents/steer': ['subagents', 'steer', 'abc', 'words'],
  'subagents/stop': ['subagents', 'stop', 'abc'],
  tasks: ['tasks', 'list', '--session', 'abc'],
  'tasks/show': ['tasks', 'show', 'abc'],
  'tasks/stop': ['tasks', 'stop', 'abc', 'a'],
  'tasks/retry': ['tasks', 'retry', 'abc'],
  'tasks/steer': ['tasks', 'steer', 'abc', 'a', 'words'],
  'sign-ins': ['sign-ins', 'list'],
  'sign-ins/end': ['sign-ins', 'end', 'abc'],
  tokens: ['tokens', 'list'],
  'tokens/create': ['tokens', 'create', 'script', '--scopes', 'chat,read', '--days', '30'],
  'tokens/revoke': ['tokens', 'revoke', 'script'],
};
const withoutCommand = [
  ...['status', 'reload', 'commands', 'agent', 'agent/wait', 'agent/cancel', 'lanes', 'lanes/mode'],
  ...['agent/steer', 'agent/summarize', 'agent/busy', 'tasks/send'],
  ...['notices', 'notices/dismiss', 'notices/answer', 'sign-in-links', 'queue/text', 'sessions/messages'],
  // Its command lists scripts when no gateway runs, which knows no other hooks.
  'hooks',
  // Its command reads the configuration, which also names the workspaces.
  'agents',
];

/** Runs a command in this process, on the data folder. */
async function parley(dataDir: string, args: readonly string[]) {
  const said = { out: '', err: '' };
  const spies = (['out', 'err'] as const).map((to) =>
    vi.spyOn(process[`std${to}`], 'write').mockImplementation((text) => {
      said[to] += String(text);
      return true;
    }),
  );
  const env = {
    PARLEY_DATA_DIR: dataDir,
    PARLEY_TOKEN: token,
    PARLEY_PORT: '0',
    PARLEY_TEST_HOME: '/nowhere',
  };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const entry = { start: async () => 0, chatSocket: '', parts: { channels: [], plugins: [] } };
  try {
    return { code: await runCommandLine(args, entry), ...said };
  } finally {
    for (const spy of spies) spy.mockRestore();
    vi.unstubAllEnvs();
  }
}

it('tells the page how to call the operations that it may call, and the page calls no others', async () => {
  const { server, port } = await aServer({ token });
  onTestFinished(server.close);
  const { body } = await send({ port, path: '/page/operations.js' });
  const { methods } = await import(`data:text/javascript,${encodeURIComponent(body)}`);
  const callable = operations.filter(({ right }) => right === 'owner');
  expect(Object.entries(methods)).toEqual(callable.map(({ name, method }) => [name, method]));

  const page = new URL('../../src/server/page/', import.meta.url);
  const files = (await readdir(page)).filter((name) => name.endsWith('.js'));
  const code = await Promise.all(files.map((name) => readFile(new URL(name, page), 'utf8')));
  const calls = code.flatMap((text) => [...text.matchAll(/\b(?:call|changeItem)\('([^']*)'/g)]);
  expect(calls.length).toBeGreaterThan(12);
  expect(calls.map(([, name = '']) => name).filter((name) => !(name in methods))).toEqual([]);
});

type Asked = { readonly method: string; readonly path: string; readonly input: unknown };

/** Serves the folder as a gateway that answers everything alike, and records what it was asked. */
async function aGateway(dataDir: string, status: number, body: string): Promise<readonly Asked[]> {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(`http://here${request.url}`);
    const sent = await text(request);
    const input = request.method === 'GET' ? Object.fromEntries(searchParams) : JSON.parse(sent);
    asked.push({ method: request.method ?? '', path: pathname, input });
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  onTestFinished(await publishAddress(dataDir, { url: `http://127.0.0.1:${port}` }));
  return asked;
}

type Described = {
  readonly summary: string;
  readonly security?: unknown;
  readonly parameters: readonly { readonly name?: string; readonly in?: string; readonly schema?: object }[];
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: object } } };
  readonly responses: Readonly<Record<string, unknown>>;
};

it('serves every operation to those who have its right, and describes it as it is', async () => {
  const { server, port, url, signIn } = await aServer({ token });
  onTestFinished(server.close);
  const authorization = `Bearer ${token}`;
  const change = { 'content-type': 'application/json', 'x-parley': '1' };
  const cookie = { cookie: await signIn(), origin: url };
  const call = async ({ name, method, input }: ListedOperation, headers: Record<string, string>) => {
    const path = `/api/${name}${method === 'GET' ? '?id=&runId=&limit=x&waitMs=x' : ''}`;
    const form = method === 'POST' ? { ...change, ...headers } : headers;
    const answer = await send({
      port,
      path,
      method,
      headers: form,
      ...(input && method === 'POST' && { body: '[]' }),
    });
    const { error } = JSON.parse(answer.body) as { error?: { code: string } };
    return error?.code;
  };
  const { paths } = JSON.parse(
    (await send({ port, path: '/openapi.json', headers: { authorization } })).body,
  );
  expect(operations.length).toBeGreaterThan(30);
  for (const one of operations) {
    const { name, method, right, summary, input, refusals = [] } = one;
    expect(await call(one, {}), name).toBe('sign_in_first');
    if (right === 'operator') expect(await call(one, cookie), name).toBe('token_required');
    // Input that doesn't match never reaches the operation; one without input would run.
    if (input) expect(await call(one, { authorization }), name).toBe('invalid_request');
    if (input && right === 'owner') expect(await call(one, cookie), name).toBe('invalid_request');

    const described: Described = paths[`/api/${name}`][method.toLowerCase()];
    expect(described.summary).toBe(summary);
    expect(described.security, name).toEqual(right === 'operator' ? [{ token: [] }] : undefined);
    expect(Object.keys(described.responses), name).toEqual(
      expect.arrayContaining(['200', ...refusals.map((code) => String(refusalStatus[code]))]),
    );
    const expected = input ? z.toJSONSchema(input, { io: 'input' }).properties : {};
    const query = described.parameters.filter((parameter) => parameter.in === 'query');
    const body = described.requestBody?.content['application/json'].schema;
    if (method === 'GET')
      expect(query.map((parameter) => parameter.name)).toEqual(Object.keys(expected ?? {}));
    else expect(body === undefined, name).toBe(input === undefined);
  }
});

it('has a command for every operation that runs without a gateway, and calls it as it is described', async () => {
  const names = operations.map(({ name }) => name);
  expect([...Object.keys(commands), ...withoutCommand].toSorted()).toEqual(names.toSorted());
  const { dataDir } = await aStore();
  const refusal = { error: { code: 'not_possible', text: 'It said no.' } };
  const asked = await aGateway(dataDir, 409, JSON.stringify(refusal));
  for (const { name, method, input } of operations) {
    const words = commands[name];
    if (words === undefined) continue;
    expect(await parley(dataDir, words), name).toEqual({ code: 1, out: '', err: 'It said no.\n' });
    const last = asked.at(-1);
    expect(last, name).toMatchObject({ method, path: `/api/${name}` });
    if (input) expect(input.safeParse(last?.input).error, name).toBeUndefined();
  }
});

/** A store with a waiting message, one that may not have arrived, a conversation, and somebody who asks for access. */
async function seed() {
  const { store, dataDir } = await aStore();
  await (await aBot(store)).asks('eve', 'ABCD2345');
  const talk = aConversation(store, { settings: { mode: 'followup' } });
  await talk.answer(await talk.begin('hello'), 'hi');
  const { part } = await talk.deliver({ kind: 'unknown', reason: 'cut' });
  await talk.worker.accept(talk.saying('one more'));
  return { store, dataDir, laneKey: talk.laneKey, part };
}

it('prints the same of a running gateway as of the store', async () => {
  const { store, dataDir, laneKey, part } = await seed();
  const lists = [
    ...['queue', 'outbox', 'sessions', 'pair', 'link', 'subagents', 'tasks', 'sign-ins'].map((noun) => [
      noun,
      'list',
    ]),
    ...[
      ['sessions', 'show', laneKey],
      ['sessions', 'export', laneKey],
      ['why', laneKey, '--json'],
    ],
    ...[
      ['why', 'nobody'],
      ['queue', 'cancel', 'nobody'],
      ['outbox', 'retry', `${part.key}0`],
    ],
  ];
  const printed = async () => {
    const all: unknown[] = [];
    for (const args of [...lists, ...lists.slice(0, 8).map((args) => [...args, '--json'])]) {
      const { code, out, err } = await parley(dataDir, args);
      // What waits grows older.
      all.push([args, code, out.replace(/ \d+ s: /g, ' ').replace(/"ageMs": \d+/g, ''), err]);
    }
    return all;
  };
  const ofStore = await printed();
  const { localDeps } = await import('../../src/cli/call-operation.ts');
  const { loadConfig } = await import('../../src/config/load-config.ts');
  const { server, url } = await aServer({
    token,
    store,
    operations: someOperations(localDeps(loadConfig())),
  });
  onTestFinished(server.close);
  onTestFinished(await publishAddress(dataDir, { url }));
  expect(await printed()).toEqual(ofStore);
  expect(ofStore).toContainEqual([
    ['outbox', 'retry', `${part.key}0`],
    1,
    '',
    expect.stringContaining('outbox'),
  ]);
});

it('changes nothing beside a running gateway, but reads what a stuck one doesn’t tell', async () => {
  const { dataDir, part } = await seed();
  const asked = await aGateway(dataDir, 200, 'not JSON');
  const list = async () => (await parley(dataDir, ['outbox', 'list'])).out;
  expect(await list()).toContain(`${part.key}  unknown`);
  expect(asked).toHaveLength(1);
  const dropped = await parley(dataDir, ['outbox', 'drop', part.key]);
  expect(dropped).toMatchObject({ code: 1, out: '', err: expect.stringContaining("doesn't answer") });
  const approved = await parley(dataDir, ['pair', 'approve', 'ABCD2345']);
  expect(approved).toMatchObject({ code: 1, out: '', err: expect.stringContaining("doesn't answer") });
  expect(await list()).toContain(`${part.key}  unknown`);
});

it('tells a limit on codes apart from one on wrong tokens', async () => {
  const { dataDir } = await aStore();
  const limited = { error: { code: 'too_many_tries', text: 'Too many codes.' } };
  await aGateway(dataDir, 429, JSON.stringify(limited));
  const words = commands['pair/approve'] ?? [];
  expect(await parley(dataDir, words)).toEqual({ code: 1, out: '', err: 'Too many codes.\n' });
});

it('works on the store beside a gateway that can’t use it, or is of an earlier version', async () => {
  const { dataDir, part } = await seed();
  const away = { error: { code: 'store_unavailable', text: 'Later.' } };
  await aGateway(dataDir, 503, JSON.stringify(away));
  expect(await parley(dataDir, ['outbox', 'drop', part.key])).toMatchObject({ code: 0 });
  const old = await seed();
  await aGateway(old.dataDir, 404, JSON.stringify({ error: { code: 'not_found' } }));
  expect(await parley(old.dataDir, ['outbox', 'drop', old.part.key])).toMatchObject({ code: 0 });
});
