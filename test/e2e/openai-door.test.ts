/** OpenAI's own client, and requests of other programs, against a running gateway. */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import OpenAI, { type APIError } from 'openai';
import { beforeAll, test } from 'vitest';
import { startAnthropicServer } from '../platforms/anthropic/server.ts';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import { onePixel } from '../support/one-pixel.ts';
import { aFolder } from '../support/own-folder.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { type Cut, cutOnce } from './cut-once.ts';
import { describeRow } from './describe-row.ts';
import { chatShapes, responseShapes } from './openai-client-shapes.ts';
import { type ParleyProcess, startParley } from './parley-process.ts';
import { until } from './until.ts';

const hello = (content = 'hello') => ({ model: 'main', messages: [{ role: 'user' as const, content }] });

/** Arrive one after the other, faster than from a model that somebody waits for. */
function wordsAbout(said: string): readonly string[] {
  return `You said: “${said}”. Here the answer is long enough to be cut off in the middle of it, and a caller can go away.`.split(
    /(?<= )/,
  );
}

const idIn = (answer: unknown) => (answer as { readonly id: string }).id;

describeRow('the OpenAI-compatible address', (atEnd) => {
  let dataDir: string;
  let parley: ParleyProcess;
  let ownerToken: string;
  let apiKey: string;
  let tokenId: string;

  beforeAll(async () => {
    dataDir = aFolder(atEnd);
    const model = await startAnthropicServer();
    atEnd(() => model.close());
    model.script((body) => ({ chunks: wordsAbout(lastUserText(body)), chunkDelayMs: 5 }));
    parley = await startParley({ dataDir, env: model.environment });
    atEnd(() => parley.kill());
    ownerToken = (await readFile(join(dataDir, 'token'), 'utf8')).trim();
    ({ id: tokenId, secret: apiKey } = await createToken('chat'));
  });

  const createToken = async (...scopes: readonly string[]) => {
    const answer = await fetch(`${parley.url}/api/tokens/create`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ownerToken}`, 'x-parley': '1', 'content-type': 'application/json' },
      body: JSON.stringify({ name: `${scopes.join('-')} ${crypto.randomUUID().slice(0, 8)}`, scopes }),
    });
    return (await answer.json()) as { readonly id: string; readonly secret: string };
  };
  const aClient = (
    options: { readonly apiKey?: string; readonly port?: number; readonly fetch?: typeof fetch } = {},
  ) =>
    new OpenAI({
      apiKey: options.apiKey ?? apiKey,
      baseURL: `${options.port === undefined ? parley.url : `http://127.0.0.1:${options.port}`}/v1`,
      ...(options.fetch && { fetch: options.fetch }),
    });
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${parley.url}/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  const lanes = () =>
    readStore(dataDir, 'select "laneKey", content, authority from inbox order by "createdAt", id');
  const countItems = () => lanes().length;
  const lastItem = () => {
    const { laneKey, content, authority } = lanes().at(-1) ?? {};
    return { laneKey: String(laneKey), authority, content: JSON.parse(String(content)) };
  };

  test('lists the agents as models', async ({ expect }) => {
    const client = aClient();
    const { data } = await client.models.list();
    expect(data.map(({ id, object }) => [id, object])).toEqual([['main', 'model']]);
    expect(await client.models.retrieve('main')).toMatchObject({ id: 'main' });
    await expect(client.models.retrieve('gpt-5')).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
    });
  });

  test('answers the example of its client', async ({ expect }) => {
    const env = { PATH: process.env.PATH, PARLEY_URL: parley.url, PARLEY_API_TOKEN: apiKey };
    const example = spawn(process.execPath, ['examples/openai/ask.ts', 'How are you?'], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env,
    });
    expect(await text(example.stdout)).toContain('You said: “How are you?”');
    expect(lastItem().laneKey).toBe(`main:api:${tokenId}:dm:shopping`);
  });

  test('answers a chat completion with the answer and usage of its run', async ({ expect }) => {
    const answer = await aClient().chat.completions.create(hello());
    const { id, choices, usage } = answer;
    expect(choices).toMatchObject([
      { finish_reason: 'stop', message: { content: expect.stringMatching(/\S/) } },
    ]);
    expect(usage?.total_tokens).toBe((usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0));
    expect(usage?.completion_tokens).toBeGreaterThan(0);
    const runId = id.replace('chatcmpl-', '');
    expect(readStore(dataDir, 'select state from runs where id = ?', runId)).toEqual([{ state: 'finished' }]);
    const { laneKey, authority } = lastItem();
    expect(laneKey).toMatch(new RegExp(`^main:api:${tokenId}:dm:conv_`));
    expect(authority).toBe('member');
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('streams the same text that a complete answer has, and the usage if asked', async ({ expect }) => {
    const whole = await aClient().chat.completions.create(hello());
    const stream = await aClient().chat.completions.create({
      ...hello(),
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('');
    expect(text).toBe(whole.choices[0]?.message.content);
    expect(chunks.length).toBeGreaterThan(5);
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop');
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: expect.any(Number) } });
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
  });

  test('streams a response whose events end in the complete one', async ({ expect }) => {
    const stream = await aClient().responses.create({ model: 'main', input: 'hello', stream: true });
    const events = [];
    for await (const event of stream) events.push(event);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
    const text = events
      .map((event) => (event.type === 'response.output_text.delta' ? event.delta : ''))
      .join('');
    const last = events.at(-1);
    expect(last).toMatchObject({
      type: 'response.completed',
      response: { status: 'completed', output: [{ content: [{ text }] }] },
    });
    const helper = aClient().responses.stream({ model: 'main', input: 'hello' });
    expect((await helper.finalResponse()).output_text).toBe(text);
  });

  test('continues a conversation by its name, by the response before, or by the user', async ({ expect }) => {
    const client = aClient();
    const first = await client.responses.create({ model: 'main', input: 'one' });
    const second = await client.responses.create({
      model: 'main',
      input: 'two',
      previous_response_id: first.id,
    });
    expect(second.previous_response_id).toBe(first.id);
    const named = await client.responses.create({
      model: 'main',
      input: 'three',
      conversation: first.conversation?.id ?? '',
    });
    expect(new Set([first, second, named].map(({ conversation }) => conversation?.id)).size).toBe(1);
    await client.chat.completions.create({ ...hello('a'), user: 'ann:1' });
    await client.chat.completions.create({ ...hello('b'), user: 'ann:1' });
    const [a, b] = lanes().slice(-2);
    expect(a?.laneKey).toBe(b?.laneKey);
    expect(a?.laneKey).toBe(`main:api:${tokenId}:dm:ann%3A1`);
    await client.responses.create({ model: 'main', input: 'anew' });
    expect(lanes().at(-1)?.laneKey).not.toBe(a?.laneKey);
  });

  test('knows no response of another token, nor one that never was', async ({ expect }) => {
    const { id } = await aClient().responses.create({ model: 'main', input: 'mine' });
    const other = aClient({ apiKey: (await createToken('chat')).secret });
    const before = countItems();
    const refused = async (previous_response_id: string) =>
      other.responses
        .create({ model: 'main', input: 'yours?', previous_response_id })
        .catch(({ status, error }: APIError) => ({ status, error }));
    const found = await refused(id);
    expect(found).toMatchObject({ status: 400, error: { code: 'previous_response_not_found' } });
    for (const none of ['resp_none', `resp_${crypto.randomUUID()}`])
      expect(await refused(none)).toEqual(found);
    expect(countItems()).toBe(before);
  });

  test('shows a response again to its token, and to no other', async ({ expect }) => {
    const client = aClient();
    const made = await client.responses.create({ model: 'main', input: 'keep this' });
    const shown = await client.responses.retrieve(made.id);
    expect(shown).toEqual(made);
    const begun = await client.responses.create({ model: 'main', input: 'more', stream: true });
    for await (const event of begun) {
      if (event.type !== 'response.created') continue;
      expect(await client.responses.retrieve(event.response.id)).toMatchObject({ status: 'in_progress' });
    }
    const other = aClient({ apiKey: (await createToken('chat')).secret });
    const refused = async (id: string) =>
      other.responses.retrieve(id).catch(({ status, error }: APIError) => ({ status, error }));
    const found = await refused(made.id);
    expect(found).toMatchObject({ status: 404, error: { code: 'not_found' } });
    for (const none of ['resp_none', `resp_${crypto.randomUUID()}`, 'x'.repeat(90), '\u0000'])
      expect(await refused(none)).toEqual(found);
  });

  test('answers a repeated call from the same run, and refuses its key for another question', async ({
    expect,
  }) => {
    const client = aClient();
    const before = countItems();
    const key = { idempotencyKey: crypto.randomUUID(), headers: {} as Record<string, string> };
    key.headers['idempotency-key'] = key.idempotencyKey;
    const answers = await Promise.all(
      [1, 2, 3].map(() => client.chat.completions.create(hello('once'), key)),
    );
    answers.push(await client.chat.completions.create(hello('once'), key));
    expect(new Set(answers.map((one) => JSON.stringify(one))).size).toBe(1);
    const streamed = await client.chat.completions.create({ ...hello('once'), stream: true }, key);
    let text = '';
    for await (const { choices } of streamed) text += choices[0]?.delta.content ?? '';
    expect(text).toBe(answers[0]?.choices[0]?.message.content);
    expect(countItems()).toBe(before + 1);

    let asked = 0;
    const counting = aClient({
      fetch: (...args) => {
        asked += 1;
        return fetch(...args);
      },
    });
    await expect(counting.chat.completions.create(hello('twice'), key)).rejects.toMatchObject({
      ...{ status: 409, code: 'idempotency_key_reused' },
    });
    expect([asked, countItems()]).toEqual([1, before + 1]);
    // Another token's key is another key.
    await aClient({ apiKey: (await createToken('chat')).secret }).chat.completions.create(
      hello('twice'),
      key,
    );
    expect(countItems()).toBe(before + 2);
  });

  const cuts: readonly (readonly [string, Cut])[] = [
    ['as it opens', { after: 'request', bytes: 0 }],
    ['within the head of the request', { after: 'request', bytes: 100 }],
    ['within its body', { after: 'request', bytes: 'all but 5' }],
    ['after the request', { after: 'request', bytes: 'all' }],
    ['as the answer begins', { after: 'answer', bytes: 1 }],
  ];

  test("starts one run for a call that OpenAI's client repeats after a lost connection", async ({
    expect,
  }) => {
    for (const [when, cut] of cuts) {
      const { port, close } = await cutOnce(parley.url, cut);
      const before = countItems();
      const answer = await aClient({ port }).chat.completions.create(hello(`cut ${when}`));
      expect(answer.choices[0]?.message.content, when).toContain(`cut ${when}`);
      await untilAtRest(dataDir, 0);
      expect(countItems() - before, when).toBe(1);
      await close();
    }
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('starts one run for a call with a key, wherever its answer was cut', async ({ expect }) => {
    const bytes = [1, 200, 900, 1200, 1500];
    for (const stream of [false, true])
      for (const cut of [
        ...cuts.map(([, one]) => one),
        ...bytes.map((at) => ({ after: 'answer', bytes: at }) as const),
      ]) {
        const { port, close } = await cutOnce(parley.url, cut);
        const before = countItems();
        const headers = { 'idempotency-key': crypto.randomUUID() };
        const ask = async (client: OpenAI) => {
          const answer = await client.responses.create(
            { model: 'main', input: 'cut', stream },
            { headers, maxRetries: 0 },
          );
          if (!(Symbol.asyncIterator in answer)) return answer.output_text;
          let text: string | undefined;
          for await (const event of answer)
            if (event.type === 'response.completed')
              text = event.response.output_text ?? JSON.stringify(event.response.output);
          return text;
        };
        await ask(aClient({ port })).catch(() => undefined);
        expect(await ask(aClient()), JSON.stringify({ stream, cut })).toMatch(/“cut”/);
        expect(countItems() - before, JSON.stringify({ stream, cut })).toBe(1);
        await close();
      }
    await untilAtRest(dataDir, 0);
    expect(findBreaches(dataDir)).toEqual([]);
  }, 120_000);

  test('tells two equal calls apart that are both repeated', async ({ expect }) => {
    const before = countItems();
    const body = { ...hello('twin'), user: 'twins' };
    const attempt = (count: number) =>
      post('chat/completions', body, { 'x-stainless-retry-count': String(count) });
    const gone = new AbortController();
    const lost = [1, 2].map(() =>
      fetch(`${parley.url}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${apiKey}`,
          'content-type': 'application/json',
          'x-stainless-retry-count': '0',
        },
        body: JSON.stringify(body),
        signal: gone.signal,
      }).catch(() => undefined),
    );
    await until(() => countItems() === before + 2, { what: 'both calls stored' });
    gone.abort();
    await Promise.all(lost);
    const ids = await Promise.all(
      [attempt(1), attempt(1)].map(async (answer) => idIn(await (await answer).json())),
    );
    expect(new Set(ids).size).toBe(2);
    expect(countItems()).toBe(before + 2);
    // A person who says the same again means it.
    await attempt(0);
    expect(countItems()).toBe(before + 3);
  });

  test('finishes the run of a caller who goes away', async ({ expect }) => {
    const gone = new AbortController();
    const stream = await aClient().chat.completions.create(
      { ...hello('walk away'), stream: true },
      { signal: gone.signal },
    );
    for await (const { choices } of stream) if (choices[0]?.delta.content) gone.abort();
    await untilAtRest(dataDir, 0);
    expect(lastItem().content.text).toBe('walk away');
    expect(readStore(dataDir, 'select outcome from inbox order by "createdAt" desc limit 1')).toEqual([
      { outcome: 'answered' },
    ]);
  });

  test('takes images as data URLs, and fetches none', async ({ expect }) => {
    const ask = (url: string) =>
      aClient().chat.completions.create({
        model: 'main',
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'look' },
              { type: 'image_url', image_url: { url } },
            ],
          },
        ],
      });
    await ask(`data:image/png;base64,${onePixel.toString('base64')}`);
    expect(lastItem().content.stored).toMatchObject([
      { kind: 'stored', mimeType: 'image/png', sizeBytes: onePixel.length },
    ]);
    const before = countItems();
    for (const url of [
      'https://127.0.0.1/x.png',
      'file:///etc/passwd',
      'data:image/png;base64,%%%',
      'data:text/html;base64,PGI+',
    ])
      await expect(ask(url)).rejects.toMatchObject({ status: 400, param: 'image_url' });
    await expect(
      ask(`data:image/png;base64,${Buffer.from('<svg>').toString('base64')}`),
    ).rejects.toMatchObject({ code: 'invalid_image' });
    expect(countItems()).toBe(before);
  });

  test('answers what other programs send', async ({ expect }) => {
    for (const { client, body, headers } of chatShapes) {
      const answer = await post('chat/completions', { model: 'main', ...body }, headers);
      expect([client, answer.status]).toEqual([client, 200]);
      expect(lastItem().content.text, client).toBe('the question');
    }
    expect(lanes().map(({ laneKey }) => laneKey)).toContain(`main:api:${tokenId}:dm:webui-1`);
    for (const { client, body } of responseShapes) {
      const answer = await post('responses', { model: 'main', ...body });
      expect([client, answer.status]).toEqual([client, 200]);
      expect(lastItem().content.text, client).toBe('the question');
    }
  }, 120_000);

  test("refuses what it can't do, in OpenAI's shape, and stores nothing", async ({ expect }) => {
    const before = countItems();
    const refusals: readonly (readonly [string, number, string, unknown, Record<string, string>?])[] = [
      ['chat/completions', 404, 'model_not_found', { ...hello(), model: 'gpt-5' }],
      ['chat/completions', 400, 'unsupported_parameter', { ...hello(), tools: [{ type: 'function' }] }],
      ['chat/completions', 400, 'unsupported_parameter', { ...hello(), functions: [{ name: 'f' }] }],
      ['chat/completions', 400, 'unsupported_parameter', { ...hello(), n: 2 }],
      [
        'chat/completions',
        400,
        'unsupported_parameter',
        { ...hello(), response_format: { type: 'json_object' } },
      ],
      [
        'chat/completions',
        400,
        'unsupported_parameter',
        { model: 'main', messages: [...hello().messages, { role: 'tool', content: 'x' }] },
      ],
      ['chat/completions', 400, 'invalid_request', { model: 'main', messages: [] }],
      [
        'chat/completions',
        400,
        'invalid_request',
        { model: 'main', messages: [{ role: 'system', content: 'x' }] },
      ],
      ['chat/completions', 400, 'invalid_request', hello('   ')],
      ['chat/completions', 400, 'string_above_max_length', hello('x'.repeat(100_001))],
      ['chat/completions', 400, 'invalid_request', { ...hello(), model: 7 }],
      ['chat/completions', 400, 'invalid_request', '{"model":"main",'],
      ['chat/completions', 400, 'invalid_request', 'null'],
      ['chat/completions', 400, 'invalid_request', '{"__proto__":{},"model":"main"}'],
      ['chat/completions', 415, 'json_expected', 'x=1', { 'content-type': 'text/plain' }],
      ['chat/completions', 413, 'invalid_request', `{"x":"${'x'.repeat(40_000_000)}"}`],
      ['responses', 400, 'invalid_request', { model: 'main' }],
      ['responses', 400, 'unsupported_parameter', { model: 'main', input: 'x', background: true }],
      [
        'responses',
        400,
        'invalid_request',
        { model: 'main', input: 'x', conversation: 'c', previous_response_id: 'resp_x' },
      ],
      [
        'responses',
        400,
        'unsupported_parameter',
        { model: 'main', input: [{ type: 'function_call_output', output: 'x' }] },
      ],
      [
        'responses',
        400,
        'unsupported_parameter',
        { model: 'main', input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] },
      ],
      ['embeddings', 404, 'not_found', {}],
      [
        'responses',
        401,
        'wrong_token',
        { model: 'main', input: 'x' },
        { authorization: `Bearer ${apiKey.slice(0, -1)}_` },
      ],
      ['responses', 401, 'wrong_token', { model: 'main', input: 'x' }, { authorization: '' }],
      [
        'responses',
        403,
        'scope_missing',
        { model: 'main', input: 'x' },
        { authorization: `Bearer ${(await createToken('read')).secret}` },
      ],
      [
        'responses',
        403,
        'origin_not_allowed',
        { model: 'main', input: 'x' },
        { origin: 'https://evil.example' },
      ],
    ];
    for (const [path, status, code, body, headers = {}] of refusals) {
      const answer = await post(path, body, headers);
      const { error } = (await answer.json()) as { readonly error: Readonly<Record<string, unknown>> };
      const what = `${path} ${JSON.stringify(body)?.slice(0, 100)}`;
      expect([what, answer.status, error.code]).toEqual([what, status, code]);
      expect(error, what).toEqual({
        message: expect.stringMatching(/^[A-ZT“].*[.…]$|…|parley/),
        type: expect.stringMatching(/_error$/),
        param: error.param,
        code,
      });
    }
    expect(countItems()).toBe(before);
  }, 120_000);

  test('survives half-sent and endless requests', async ({ expect }) => {
    const before = countItems();
    const { hostname, port } = new URL(parley.url);
    const head = `POST /v1/responses HTTP/1.1\r\nhost: ${hostname}:${port}\r\nauthorization: Bearer ${apiKey}\r\ncontent-type: application/json\r\n`;
    for (const sent of [
      head,
      `${head}content-length: 50\r\n\r\n{"model":"main","inp`,
      `${head}transfer-encoding: chunked\r\n\r\nfffffff\r\n{`,
    ]) {
      const socket = connect(Number(port), hostname);
      await new Promise<void>((resolve) => socket.write(sent, () => resolve()));
      socket.destroy();
    }
    expect((await aClient().responses.create({ model: 'main', input: 'still here' })).output_text).toContain(
      'still here',
    );
    expect(countItems()).toBe(before + 1);
  });

  test('gives the holder of the access token the rights of the owner', async ({ expect }) => {
    await aClient({ apiKey: ownerToken }).chat.completions.create(hello());
    expect(lastItem()).toMatchObject({
      authority: 'owner',
      laneKey: expect.stringMatching(/^main:api:owner:dm:/),
    });
    await aClient({ apiKey: (await createToken('chat', 'operate')).secret }).chat.completions.create(hello());
    expect(lastItem().authority).toBe('owner');
  });
});
