/** The HTTP and WebSocket API of a real gateway, checked against its own description. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, test } from 'vitest';
import { z } from 'zod';
import { mediaFolder } from '../../src/config/media-folder.ts';
import { newOutgoingName } from '../../src/inbound/media.ts';
import { raiseAlert } from '../../src/store/alerts/alert.ts';
import type { Store } from '../../src/store/base/command.ts';
import { readTimeline } from '../../src/store/reads/read-timeline.ts';
import { callsTools } from '../agent/support/scripted-model.ts';
import { openWebSocket } from '../channels/frame-transports.ts';
import { anAccount, createIntakeFixture, refOf } from '../inbound/support/intake-fixture.ts';
import { openAsking } from '../runs/asking-run.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aBot } from '../store/access-builders.ts';
import { routeFor } from '../store/builders.ts';
import { aCoordinator } from '../store/delegation/a-coordinator.ts';
import { aFamilyWorker } from '../store/family.ts';
import { openStore } from '../support/open-store.ts';
import { aFolder } from '../support/own-folder.ts';
import { describeRow } from './describe-row.ts';
import { type ParleyProcess, startParley } from './parley-process.ts';

type Schema = Record<string, unknown>;
type Content = Readonly<Record<string, { readonly schema: Schema }>>;
type Operation = { readonly responses: Readonly<Record<string, { readonly content?: Content }>> };
type Description = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<'ClientFrame' | 'ServerFrame', Schema>>;
    readonly responses: { readonly refusal: { readonly content: Content } };
  };
};

/** Accepts what the schema names and nothing else: another version may send more fields, this one doesn't. */
function reader(schema: Schema | undefined): z.ZodType {
  return z.fromJSONSchema(closed(schema) as Schema);
}

function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  return 'properties' in inner ? { additionalProperties: false, ...inner } : inner;
}

describeRow('the API', (atEnd) => {
  let parley: ParleyProcess;
  let dataDir: string;
  let token: string;
  let description: Description;

  beforeAll(async () => {
    dataDir = aFolder(atEnd);
    parley = await startParley({ dataDir, env: {} });
    atEnd(() => parley.kill());
    token = (await readFile(join(dataDir, 'token'), 'utf8')).trim();
    description = await body(get('/openapi.json'));
  });

  const call = (path: string, request: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${token}`, 'x-parley': '1', 'content-type': 'application/json' };
    return fetch(`${parley.url}${path}`, { headers, ...request });
  };
  const get = (path: string) => call(path);
  const post = (path: string, input: object = {}) =>
    call(path, { method: 'POST', body: JSON.stringify(input) });
  const body = async (answer: Promise<Response>) => JSON.parse(await (await answer).text());

  /**
   * A notice, two questions, a part for a network that isn't connected, two waiting messages, a sub-agent and
   * a task that a process works on, an account that was linked and an agent that was chosen in chat, and a file that was
   * sent.
   */
  const seed = async () => {
    const store = await openStore({ kind: 'sqlite', dataDir });
    const asking = openAsking(store);
    await asking.say('go');
    await asking.play(callsTools({ id: '1', name: 'act' }));
    const [asked] = await asking.questions();
    await store.write(raiseAlert, { kind: 'events-missed', subject: 'test/bot' });
    const bot = await aBot(store);
    await bot.asks('eve', 'ABCD2345');
    await bot.asks('bob', 'EFGH2345');
    const { say } = aConversation(store, { settings: { debounceMs: 600_000 } });
    await say('one');
    await say('two');
    const worker = aFamilyWorker(store);
    const child = await worker.spawnOne((await worker.begin()).run);
    await worker.claimRun(child.laneKey);
    const coordinator = aCoordinator(store);
    const { taskId } = await coordinator.begin([{ id: 'a' }, { id: 'b', after: ['a'] }]);
    await coordinator.claimPeer(taskId, 'a');
    const [linked, other] = [anAccount('alpha'), anAccount('beta')];
    const town = createIntakeFixture(store);
    await town.link(linked, other);
    await town.send(linked, '/agent main', { group: '-9', isAdmin: true });
    const bound = { conversation: 'alpha/bot/-9' };
    const file = await sendFile(store);
    await store.close();
    return { file, child, taskId, linked: refOf(linked), bound, asked: asked?.id };
  };

  /** Answers with a file that is in the media folder. Returns the message's id. */
  const sendFile = async (store: Store) => {
    const { laneKey, begin, answer } = aConversation(store);
    const run = await begin();
    const content = {
      kind: 'media',
      path: newOutgoingName(),
      mimeType: 'text/plain',
      name: 'a.txt',
    } as const;
    await mkdir(mediaFolder(dataDir), { recursive: true });
    await writeFile(join(mediaFolder(dataDir), content.path), 'bytes');
    await answer(run, '', { parts: [{ route: routeFor(run), content, purpose: 'reply' }] });
    return (await store.read(readTimeline, { laneKey, limit: 10 })).at(-1)?.messageId ?? '';
  };

  test('answers every call as the OpenAPI document describes it', async ({ expect }) => {
    const { child, taskId, linked, bound, asked, file } = await seed();
    const { runId } = await body(post('/api/agent', { message: 'hello' }));
    const { notices, questions } = await body(get('/api/notices'));
    const [session] = (await body(get('/api/sessions'))).sessions;
    const [first, second] = (await body(get('/api/queue'))).items;
    const [part] = (await body(get('/api/outbox'))).parts;
    const calls: Readonly<Record<string, () => Promise<Response>>> = {
      'get /openapi.json': () => get('/openapi.json'),
      'get /healthz': () => get('/healthz'),
      'get /readyz': () => get('/readyz?verbose'),
      'get /metrics': () => get('/metrics'),
      'get /api/status': () => get('/api/status'),
      'post /api/reload': () => post('/api/reload'),
      'get /api/commands': () => get('/api/commands'),
      'post /api/agent': () => post('/api/agent', { message: 'hello', key: 'one' }),
      'post /api/agent/summarize': async () => {
        const last = await body(post('/api/agent', { message: 'hello', key: 'one' }));
        await get(`/api/agent/wait?runId=${last.runId}`);
        return post('/api/agent/summarize', { session: last.session });
      },
      'post /api/tasks/send': () =>
        post('/api/tasks/send', { message: '---\ntype: task\ntask_id: t1\n---\nhello', waitMs: 60_000 }),
      'post /api/agent/steer': () => post('/api/agent/steer', { session: session.key, message: 'left' }),
      'get /api/agent/busy': () => get(`/api/agent/busy?session=${encodeURIComponent(session.key)}`),
      'get /api/agent/wait': () => get(`/api/agent/wait?runId=${runId}`),
      'post /api/agent/cancel': () => post('/api/agent/cancel', { runId }),
      // The run that was just cancelled ends its feed.
      'get /api/feed': () => get(`/api/feed?run=${runId}`),
      'get /api/file': () => get(`/api/file?message=${encodeURIComponent(file)}`),
      'get /api/sessions': () => get('/api/sessions'),
      'get /api/sessions/show': () => get(`/api/sessions/show?id=${session.id}`),
      'get /api/sessions/messages': () => get(`/api/sessions/messages?id=${session.id}&limit=1`),
      'get /api/queue': () => get('/api/queue'),
      'post /api/queue/promote': () => post('/api/queue/promote', { id: second.id }),
      'get /api/lanes': () => get('/api/lanes'),
      'post /api/lanes/mode': () => post('/api/lanes/mode', { lane: second.laneKey, mode: 'collect' }),
      'get /api/queue/text': () => get(`/api/queue/text?id=${second.id}`),
      'post /api/queue/edit': () => post('/api/queue/edit', { id: second.id, text: 'two, please' }),
      'post /api/queue/cancel': () => post('/api/queue/cancel', { id: first.id }),
      'get /api/why': () => get(`/api/why?id=${runId}`),
      'get /api/outbox': () => get('/api/outbox'),
      'post /api/outbox/drop': () => post('/api/outbox/drop', { key: part.key }),
      'post /api/outbox/retry': () => post('/api/outbox/retry', { key: part.key }),
      'get /api/approvals': () => get('/api/approvals'),
      'post /api/approvals/answer': () => post('/api/approvals/answer', { id: asked, verdict: 'always' }),
      'post /api/approvals/revoke': () => post('/api/approvals/revoke', { id: asked }),
      'get /api/pair': () => get('/api/pair'),
      'post /api/pair/approve': () => post('/api/pair/approve', { which: 'EFGH2345' }),
      'post /api/pair/revoke': () => post('/api/pair/revoke', { ref: 'test:bob' }),
      'get /api/links': () => get('/api/links'),
      'post /api/links/remove': () => post('/api/links/remove', { ref: linked }),
      'get /api/bindings': () => get('/api/bindings'),
      'post /api/bindings/remove': () => post('/api/bindings/remove', bound),
      'get /api/agents': () => get('/api/agents'),
      'get /api/subagents': () => get('/api/subagents'),
      'get /api/subagents/info': () => get(`/api/subagents/info?id=${child.id}`),
      'get /api/subagents/log': () => get(`/api/subagents/log?id=${child.id}`),
      'post /api/subagents/steer': () => post('/api/subagents/steer', { id: child.id, text: 'faster' }),
      'post /api/subagents/stop': () => post('/api/subagents/stop', { id: child.id }),
      'get /api/tasks': () => get('/api/tasks'),
      'get /api/tasks/show': () => get(`/api/tasks/show?id=${taskId}`),
      'post /api/tasks/steer': () => post('/api/tasks/steer', { id: taskId, subtask: 'a', text: 'faster' }),
      'post /api/tasks/stop': () => post('/api/tasks/stop', { id: taskId }),
      'post /api/tasks/retry': () => post('/api/tasks/retry', { id: taskId }),
      'get /api/notices': () => get('/api/notices'),
      'post /api/notices/dismiss': () => post('/api/notices/dismiss', { id: notices[0].id }),
      'post /api/notices/answer': () => post('/api/notices/answer', { id: questions[0].id, verdict: 'deny' }),
      'post /api/sign-in-links': () => post('/api/sign-in-links'),
      'post /api/sign-in': () => post('/api/sign-in', { token }),
      'get /api/sign-ins': () => get('/api/sign-ins'),
      'post /api/sign-ins/end': () => post('/api/sign-ins/end', { others: true }),
      'get /api/hooks': () => get('/api/hooks'),
      'get /v1/models': () => get('/v1/models'),
      'get /v1/models/{model}': () => get('/v1/models/main'),
      'post /v1/chat/completions': () =>
        post('/v1/chat/completions', { model: 'main', messages: [{ role: 'user', content: 'hello' }] }),
      'get /v1/responses/{id}': async () => {
        const { id } = await body(post('/v1/responses', { model: 'main', input: 'hello' }));
        return get(`/v1/responses/${id}`);
      },
      'post /v1/responses': () => post('/v1/responses', { model: 'main', input: 'hello' }),
      'post /api/tokens/create': () => post('/api/tokens/create', { name: 'script', scopes: ['chat'] }),
      'get /api/tokens': () => get('/api/tokens'),
      'post /api/tokens/revoke': () => post('/api/tokens/revoke', { which: 'script' }),
      'post /api/sign-out': () => post('/api/sign-out'),
    };
    const described = Object.entries(description.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method} ${path}`),
    );
    const socket = 'get /channels/{channel}/{path}';
    expect(described.toSorted()).toEqual([...Object.keys(calls), socket].toSorted());
    for (const [name, ask] of Object.entries(calls)) {
      const [method = '', path = ''] = name.split(' ');
      const answer = await ask();
      expect(answer.status, name).toBeLessThan(300);
      const { content = {} } = description.paths[path]?.[method]?.responses[answer.status] ?? {};
      const text = await answer.text();
      const [type] = Object.keys(content);
      if (type === undefined) expect([answer.status, text], name).toEqual([204, '']);
      else expect(answer.headers.get('content-type'), name).toContain(type);
      if (type === 'application/json')
        expect(reader(content[type]?.schema).safeParse(JSON.parse(text)).error, name).toBeUndefined();
    }
  });

  test('sends frames on its socket as the document describes them', async ({ expect }) => {
    const signIn = await post('/api/sign-in', { token });
    const cookie = signIn.headers.get('set-cookie')?.split(';')[0] ?? '';
    const socket = await openWebSocket(parley.url, cookie);
    const { ClientFrame, ServerFrame } = description.components.schemas;
    const frames: unknown[] = [];
    const answered = new Promise<void>((resolve) =>
      socket.onFrame((text) => {
        frames.push(JSON.parse(text));
        if (text.startsWith('{"type":"message"')) resolve();
      }),
    );
    const say = (frame: object) => {
      expect(reader(ClientFrame).safeParse(frame).error).toBeUndefined();
      socket.send(JSON.stringify(frame));
    };
    say({ type: 'hello' });
    say({ type: 'send', id: crypto.randomUUID(), text: 'hello' });
    await answered;
    socket.close();
    for (const frame of frames)
      expect(reader(ServerFrame).safeParse(frame).error, JSON.stringify(frame)).toBeUndefined();
  });

  test('refuses undescribed calls, all in the same form', async ({ expect }) => {
    const { schema } = description.components.responses.refusal.content['application/json'] ?? {};
    const refused = [
      [400, post('/api/agent', { message: 'hello', mode: 'fast' })],
      [400, post('/api/agent', { message: 'hello', session: 'main:no:such:dm:one' })],
      [400, get('/api/agent/wait?runId=x&timeoutMs=600001')],
      [400, post('/api/tasks/send', { message: 'hello' })],
      [404, get('/api/agent/wait?runId=x')],
      [404, post('/api/agent/cancel', { runId: 'x' })],
      [404, get('/api/sessions/show?id=nothing')],
      [404, post('/api/queue/cancel', { id: 'nothing' })],
      [404, post('/api/queue/edit', { id: 'nothing', text: 'words' })],
      [400, post('/api/queue/edit', { id: 'nothing', text: ' ' })],
      [404, get('/api/queue/text?id=nothing')],
      [404, post('/api/lanes/mode', { lane: 'nothing', mode: 'steer' })],
      [400, get('/api/lanes?waitMs=30001')],
      [404, post('/api/outbox/retry', { key: 'x' })],
      [404, get('/api/why?id=nothing')],
      [404, get('/api/subagents/info?id=nothing')],
      [404, get('/api/tasks/show?id=nothing')],
      [404, get('/api/tasks?session=nothing')],
      [404, post('/api/tasks/steer', { id: 'nothing', subtask: 'a', text: 'faster' })],
      [404, post('/api/approvals/answer', { id: 'nothing', verdict: 'deny' })],
      [404, post('/api/approvals/revoke', { id: 'nothing' })],
      [404, post('/api/pair/approve', { which: 'ABCD2346' })],
      [400, post('/api/pair/revoke', { ref: 'nobody' })],
      [409, post('/api/links/remove', { ref: 'web:owner' })],
      [401, call('/openapi.json', { headers: {} })],
    ] as const;
    for (const [status, asked] of refused) {
      const answer = await asked;
      expect(answer.status, answer.url).toBe(status);
      expect(reader(schema).safeParse(await answer.json()).error, answer.url).toBeUndefined();
    }
  });

  test('counts a call once that is repeated under its Idempotency-Key', async ({ expect }) => {
    const once = (path: string, input: object, key: string) =>
      call(path, {
        method: 'POST',
        body: JSON.stringify(input),
        headers: {
          ...{ authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          ...{ 'x-parley': '1', 'idempotency-key': key },
        },
      });
    const hello = () => body(once('/api/agent', { message: 'once' }, 'a-key'));
    const { runId } = await hello();
    expect((await hello()).runId).toBe(runId);
    const invited = { name: 'twice', scopes: ['read'] };
    expect((await once('/api/tokens/create', invited, 'b-key')).status).toBe(200);
    expect((await once('/api/tokens/create', invited, 'b-key')).status).toBe(409);
    for (const other of [
      once('/api/agent', { message: 'another' }, 'a-key'),
      once('/api/tokens/create', { ...invited, name: 'another' }, 'b-key'),
    ]) {
      expect((await other).status).toBe(409);
      expect(await body(other)).toMatchObject({ error: { code: 'key_reused' } });
    }
    expect((await once('/api/agent', { message: 'once' }, 'x'.repeat(201))).status).toBe(400);
  });

  test('answers the calls that docs/api.md begins with, as copied', async ({ expect }) => {
    const page = await readFile('docs/api.md', 'utf8');
    const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, code]) => code);
    const script = blocks.join("\necho '---'\n").replaceAll('http://127.0.0.1:7411', parley.url);
    const cwd = aFolder(atEnd);
    const copied = script.replace('data/token', join(dataDir, 'token'));
    const { stdout } = await promisify(execFile)('bash', ['-c', copied], { cwd, timeout: 60_000 });
    const [sent = '', waited = '', followed = ''] = stdout.split('---\n');
    expect(JSON.parse(sent)).toMatchObject({ runId: expect.any(String) });
    expect(JSON.parse(waited)).toMatchObject({ status: 'ok' });
    expect(followed).toContain('"state":"ended"');
  });
});
