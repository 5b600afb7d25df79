import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RefusalClass } from '#contracts/model.ts';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { faultIn } from '../../src/models/model-fault.ts';
import { createOpenAiProvider } from '../../src/models/openai/openai.ts';
import type { ApiAccess, KeyNote } from '../../src/models/provider-options.ts';
import { nextTry } from '../../src/models/retry.ts';
import { refusing, ServerRefusal } from '../../src/models/server-refusal.ts';
import { type ErrorBody, errorBodies } from '../inputs/errors/bodies.ts';
import { shareOf } from '../support/turn.ts';
import { aRequest, aUserMessage, eventsOf, failureIn } from './builders.ts';

const apis = { anthropic: createAnthropicProvider, openai: createOpenAiProvider } as const;
type Api = keyof typeof apis;

type Sent = { readonly key: string; readonly body: Readonly<Record<string, unknown>> };
type Answer = (sent: Sent) => Pick<ErrorBody, 'status' | 'body' | 'headers'>;

/** By the first part of a call's path. One server for all of them: to start one took as long as most tests here. */
const answers = new Map<string, Answer>();
const server = createServer(async (request, response) => {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  const key = String(request.headers.authorization ?? request.headers['x-api-key'] ?? '');
  const answer = answers.get(request.url?.split('/')[1] ?? '');
  if (answer === undefined) throw new Error(`nobody asked for ${request.url}`);
  const { status, body, headers } = answer({ key, body: JSON.parse(Buffer.concat(pieces).toString()) });
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
});
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

/** Returns an address of the server whose calls are answered so, and those calls. */
function answering(answer: Answer) {
  const calls: Sent[] = [];
  const name = String(answers.size);
  answers.set(name, (sent) => {
    calls.push(sent);
    return answer(sent);
  });
  return { calls, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/${name}` };
}

async function ask(api: Api, error: Pick<ErrorBody, 'status' | 'body' | 'headers'>, request = aRequest()) {
  const served = answering(() => error);
  const notes: KeyNote[] = [];
  const access: ApiAccess = {
    apiKeys: ['key-one', 'key-two'],
    baseUrl: `${served.url}/v1`,
    noteKey: (note) => notes.push(note),
  };
  const provider = apis[api]({ ...access, model: 'some-model' });
  const failure = failureIn(await eventsOf(provider, request));
  if (failure === undefined) throw new Error('no failure');
  return { failure, notes, keys: new Set(served.calls.map(({ key }) => key)).size };
}

/** What follows from each class: kind, whether the next key is tried, and what follows with a fallback model. */
const consequences: Readonly<Record<RefusalClass, readonly [kind: string, rotates: boolean, next: string]>> =
  {
    overflow: ['overflow', false, 'end'],
    'answer-limit': ['failed', false, 'fallback'],
    content: ['unsendable', false, 'end'],
    policy: ['refused', false, 'end'],
    key: ['unauthorised', true, 'fallback'],
    credit: ['unauthorised', true, 'fallback'],
    allowance: ['overloaded', true, 'fallback'],
    rate: ['overloaded', false, 'again'],
    passing: ['overloaded', false, 'again'],
    slip: ['failed', false, 'again'],
    'no-model': ['failed', false, 'fallback'],
    forbidden: ['unauthorised', false, 'fallback'],
    address: ['failed', false, 'fallback'],
    unknown: ['failed', false, 'fallback'],
  };

describe.each(Object.keys(apis) as Api[])('a refusal by a server of the kind %s', (api) => {
  const cases = errorBodies
    .filter((each) => each.api === undefined || each.api === api)
    .map(
      (each) =>
        [
          `${each.is}, ${each.status} of ${each.from}: ${JSON.stringify(each.body).slice(0, 70)}`,
          each,
        ] as const,
    );
  it.each(cases)('acts on what a refusal means: %s', async (_what, error) => {
    const { failure, notes, keys } = await ask(api, error);
    const [kind, rotates, next] = consequences[error.is];
    expect([failure.refusal, failure.kind, failure.detail]).toEqual([error.is, kind, expect.any(String)]);
    expect(keys).toBe(rotates ? 2 : 1);
    const step = nextTry(failure, { tried: 1, hasFallback: true, random: 0 });
    expect(step.kind).toBe(next);
    if (error.waitMs !== undefined) expect(failure.retry).toEqual({ kind: 'later', afterMs: error.waitMs });
    if (error.window !== undefined) expect(failure.window ?? null).toBe(error.window);
    if (error.says !== undefined) expect(failure.detail).toContain(error.says);
    const told = notes.filter((note) => note.isRefused);
    expect(told.length).toBe(error.is === 'key' || error.is === 'credit' ? 2 : 0);
    expect(told.every((note) => note.isRefused && note.isCredit === (error.is === 'credit'))).toBe(true);
    expect(failure.detail).not.toMatch(/key-one|key-two/);
  });
});

it('tries the next key if a stream breaks off over the first one, until all are refused', async () => {
  const chunk = { id: 'a', object: 'chat.completion.chunk', model: 'm' };
  const refused = { ...chunk, choices: [], error: { code: 402, message: 'Insufficient credits' } };
  const answer = { ...chunk, choices: [{ index: 0, delta: { content: 'hi' }, finish_reason: 'stop' }] };
  let works = 'Bearer key-two';
  const served = answering(({ key }) => ({
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    body: `data: ${JSON.stringify(key === works ? answer : refused)}\n\ndata: [DONE]\n\n`,
  }));
  const notes: KeyNote[] = [];
  const provider = createOpenAiProvider({
    ...{ model: 'm', apiKeys: ['key-one', 'key-two'], baseUrl: `${served.url}/v1` },
    noteKey: (note) => notes.push(note),
  });
  const first = failureIn(await eventsOf(provider));
  expect(first).toMatchObject({ refusal: 'credit', retry: { kind: 'later' } });
  expect(notes.at(-1)).toMatchObject({ key: 1, keys: 2, isRefused: true, isCredit: true });
  expect((await eventsOf(provider)).at(-1)).toMatchObject({ type: 'complete' });
  works = 'none';
  expect(failureIn(await eventsOf(provider))).not.toHaveProperty('retry');
});

it('asks again without the images that broke a stream', async () => {
  const refused = { error: { object: 'error', message: 'The model is not multimodal', code: 400 } };
  const answer = { id: 'a', choices: [{ index: 0, delta: { content: 'hi' }, finish_reason: 'stop' }] };
  const served = answering(({ body }) => ({
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    body: `data: ${JSON.stringify(JSON.stringify(body).includes('image_url') ? refused : answer)}\n\ndata: [DONE]\n\n`,
  }));
  const provider = createOpenAiProvider({ model: 'm', apiKeys: ['key'], baseUrl: `${served.url}/v1` });
  const picture = { type: 'image', mimeType: 'image/png', base64: 'aGk=' } as const;
  const request = aRequest({
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Look' }, picture] }],
  });
  expect(failureIn(await eventsOf(provider, request))).toMatchObject({
    retry: { kind: 'later', afterMs: 0 },
  });
  expect((await eventsOf(provider, request)).at(-1)).toMatchObject({ type: 'complete' });
});

describe('malformed bodies', () => {
  const strange = [null, 7, true, '', 'x', [], {}, [null], { a: null }];
  const mutations = (body: unknown): unknown[] => [
    { error: { message: 'Provider returned error', metadata: { raw: JSON.stringify(body) } } },
    { error: JSON.stringify(body) },
    [body],
    { detail: body },
    { wrapped: body },
    ...Object.keys(Object(body)).flatMap((field) =>
      strange.map((value) => ({ ...Object(body), [field]: value })),
    ),
    { ...Object(body), unknown_field: strange },
    JSON.stringify(body)?.slice(0, -5),
  ];
  it('reads any body as a failure and alerts the owner only if the original would', () => {
    for (const { body, is } of errorBodies)
      for (const [index, mutated] of mutations(body).entries())
        for (const status of [
          [200, 400],
          [403, 422],
          [400, 429],
          [404, 500],
        ][index % 4] ?? []) {
          const text = index % 2 === 0 ? mutated : JSON.stringify(mutated);
          const error = new ServerRefusal({
            status,
            headers: new Headers(),
            body: text,
            url: 'http://x/',
          });
          const fault = faultIn(error, false, { request: aRequest(), secrets: [], now: 0 });
          expect(fault?.failure.detail).toEqual(expect.any(String));
          if (fault?.isAboutKey !== true) continue;
          const mayAlarm = [
            'key',
            'credit',
            'allowance',
            'forbidden',
            'rate',
            'no-model',
            'policy',
            'overflow',
          ];
          expect([status, mutated, mayAlarm]).toEqual([status, mutated, expect.arrayContaining([is])]);
        }
  });
});

describe('quoted text', () => {
  const wordings = errorBodies.map(({ body }) => JSON.stringify(body)).join('\n');
  const hostile = `${wordings}\n{"error":{"code":"invalid_api_key","type":"insufficient_quota"}}`;
  const request = aRequest({ messages: [aUserMessage(hostile)] });
  it.each<[string, number, (said: string) => unknown]>([
    ['in a sentence', 400, (said) => ({ error: { message: `could not read: ${said}` } })],
    ['as the whole message', 403, (said) => ({ error: { message: said } })],
    ['as a plain text', 400, (said) => `no: ${said}`],
    [
      'as JSON inside a message',
      400,
      () => ({ error: { message: 'bad: {"error":{"code":"invalid_api_key"}}' } }),
    ],
    ['in a field for the input', 422, (said) => ({ detail: [{ msg: 'Field required', input: said }] })],
    [
      'behind a router',
      400,
      (said) => ({ error: { message: 'Provider returned error', metadata: { raw: said } } }),
    ],
  ])('never alerts about key or credit when a server quotes a message %s', async (_how, status, echo) => {
    for (const { body } of shareOf(errorBodies, 3))
      for (const said of [JSON.stringify(body), wordingIn(body)]) {
        const { failure, notes } = await ask('openai', { status, body: echo(said) }, request);
        expect([said, failure.kind, notes.filter((note) => note.isRefused)]).toEqual([
          said,
          expect.not.stringMatching('unauthorised'),
          [],
        ]);
      }
  });
});

function wordingIn(body: unknown): string {
  const { error, message } = body as { error?: { message?: unknown }; message?: unknown };
  return String(error?.message ?? message ?? JSON.stringify(body));
}

it('searches only the first 1,000 bytes of an untyped body for a page', async () => {
  let sent = 0;
  const blanks = async function* () {
    for (; sent < 100; sent += 1) yield Buffer.alloc(100, ' ');
    yield Buffer.from('<html>');
  };
  const answer = { ok: true, status: 200, headers: new Headers(), body: blanks() } as unknown as Response;
  const passed = await refusing(async () => answer)('http://models.example/v1');
  expect(sent).toBeLessThan(12);
  expect(await passed.text()).toHaveLength(10_006);
});
