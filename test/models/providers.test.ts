import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { LlmMessage } from '#contracts/model.ts';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { createDemoProvider } from '../../src/models/demo.ts';
import { createOpenAiProvider } from '../../src/models/openai/openai.ts';
import { playEvents } from '../agent/support/llm-events.ts';
import { startAnthropicServer } from '../platforms/anthropic/server.ts';
import type { Reply } from '../platforms/anthropic/turn.ts';
import type { Flavour } from '../platforms/openai/chunks.ts';
import { startOpenAiServer } from '../platforms/openai/server.ts';
import { aPatientClock, aRequest, aUserMessage, eventsOf, failureIn, listTool, textIn } from './builders.ts';
import { type ProviderStage, providerContract } from './provider-contract.ts';

const million = 1_000_000;
const prices = { input: 2 * million, output: 10 * million, cacheRead: million, cacheWrite: 3 * million };

async function anthropic(): Promise<ProviderStage> {
  const server = await startAnthropicServer();
  return {
    ...stageOf(server),
    provider: (apiKeys = ['test-key']) =>
      createAnthropicProvider({ apiKeys, prices, model: 'claude-sonnet-5-5', baseUrl: server.url }),
  };
}

async function openAi(flavour: Flavour): Promise<ProviderStage> {
  const server = await startOpenAiServer({ flavour });
  return {
    ...stageOf(server),
    provider: (apiKeys = ['test-key']) =>
      createOpenAiProvider({ apiKeys, prices, model: 'some-model', baseUrl: server.url }),
  };
}

type Server = {
  readonly requests: readonly {
    readonly body: unknown;
    readonly refusal?: string;
    readonly status: number;
  }[];
  script(script: readonly Reply[]): void;
  close(): Promise<void>;
};

function stageOf(server: Server): Omit<ProviderStage, 'provider'> {
  return {
    script: server.script,
    close: server.close,
    refusals: () =>
      server.requests.flatMap(({ refusal, status }) => (status === 400 && refusal ? [refusal] : [])),
    bodies: () => server.requests.map(({ body }) => body),
  };
}

const cost = 800 * 2 + 200 + 100 * 10;
providerContract('Anthropic', anthropic, { signs: true, cost });
providerContract('OpenAI', () => openAi('openai'), { signs: false, cost });
// Ollama reports no cached tokens.
providerContract('Ollama', () => openAi('ollama'), { signs: false, cost: 1000 * 2 + 100 * 10 });
providerContract('llama.cpp', () => openAi('llamacpp'), { signs: true, cost });
// OpenRouter's own charge counts.
providerContract('OpenRouter', () => openAi('openrouter'), { signs: true, cost: 250_000 });

/** Opens the demo, which has no server and makes up its own answers. */
async function demo(): Promise<ProviderStage> {
  return {
    provider: () => createDemoProvider({ clock: aPatientClock() }),
    refusals: () => [],
    bodies: () => [],
    close: async () => undefined,
  };
}

const spawnTool = { ...listTool, name: 'sessions_spawn' };
const callingRequest = aRequest({ messages: [aUserMessage('spawn two')], tools: [spawnTool] });
providerContract('the demo', demo, { signs: false, cost: 0, callingRequest });

describe.each([
  {
    api: 'Anthropic',
    start: startAnthropicServer,
    create: createAnthropicProvider,
    model: 'claude-sonnet-5-5',
  },
  { api: 'OpenAI', start: startOpenAiServer, create: createOpenAiProvider, model: 'gpt-5' },
])('an answer from $api under a name without prices', ({ start, create, model }) => {
  it.each([
    ['another name', '"model":"bedrock/some-model"', 'bedrock/some-model'],
    ['no name', '"its-model":""', model],
  ])('charges an answer as the requested model if it has %s', async (_what, named, expected) => {
    const server = await start();
    onTestFinished(server.close);
    const fetch: typeof globalThis.fetch = async (...call) => {
      const answer = await globalThis.fetch(...call);
      const text = (await answer.text()).replaceAll(/"model":"[^"]*"/g, named);
      return new Response(text, { headers: { 'content-type': answer.headers.get('content-type') ?? '' } });
    };
    const access = { apiKeys: ['test-key'], model, baseUrl: server.url };
    const [direct, proxied] = [create(access), create({ ...access, fetch })];
    const streamed = (await eventsOf(direct)).at(-1);
    expect(streamed).toMatchObject({ type: 'complete', cost: expect.any(Number) });
    expect((await eventsOf(proxied)).at(-1)).toEqual({ ...streamed, model: expected });
    const whole = await direct.send(aRequest(), new AbortController().signal);
    const sent = await proxied.send(aRequest(), new AbortController().signal);
    expect([whole.cost > 0, sent]).toEqual([true, { ...whole, model: expected }]);
  });
});

it.each([
  ['Anthropic', createAnthropicProvider],
  ['OpenAI', createOpenAiProvider],
])('shows no key that cannot be sent in a request to %s', async (_api, create) => {
  const apiKeys = ['first-key\nsecond-key'];
  const events = await eventsOf(create({ apiKeys, model: 'some-model', baseUrl: 'http://127.0.0.1:9' }));
  expect(failureIn(events)).toMatchObject({ kind: 'unsendable', isLocal: true });
  expect(failureIn(events)?.detail).not.toMatch(/first-key|second-key/);
});

it.each([
  ['Anthropic', createAnthropicProvider, 'ANTHROPIC_CUSTOM_HEADERS'],
  ['OpenAI', createOpenAiProvider, 'OPENAI_CUSTOM_HEADERS'],
])('sends an %s server its own headers and none from the environment', async (_api, create, variable) => {
  vi.stubEnv(variable, 'x-of-another: secret\nx-of-all: secret');
  onTestFinished(() => void vi.unstubAllEnvs());
  const sent: Headers[] = [];
  const fetch: typeof globalThis.fetch = async (_url, init) => {
    sent.push(new Headers(init?.headers));
    return new Response('{"error":{"message":"no-entry"}}', { status: 404 });
  };
  const headers = { 'x-own': 'no-entry' };
  const provider = create({ apiKeys: ['test-key'], model: 'some-model', headers, fetch });
  // The server's error detail is shown to people.
  expect(failureIn(await eventsOf(provider))?.detail).toContain('[secret]');
  expect(sent.map((each) => [each.get('x-own'), each.get('x-of-another'), each.get('x-of-all')])).toEqual([
    ['no-entry', null, null],
  ]);
  expect(process.env[variable]).toContain('x-of-another');
});

it.each([
  ['Anthropic', createAnthropicProvider],
  ['OpenAI', createOpenAiProvider],
])('charges nothing for a request to %s that found no connection', async (_api, create) => {
  const failWith = async (code: string, syscall: string) => {
    const cause = Object.assign(new Error('no'), { code, syscall });
    const fetch = () => Promise.reject(new TypeError('fetch failed', { cause }));
    return failureIn(await eventsOf(create({ apiKeys: ['test-key'], model: 'some-model', fetch })));
  };
  expect(await failWith('ETIMEDOUT', 'connect')).toMatchObject({ kind: 'overloaded', isFree: true });
  expect(await failWith('ETIMEDOUT', 'read')).not.toHaveProperty('isFree');
});

describe('OpenAI-compatible servers', () => {
  const open = async (options: Parameters<typeof startOpenAiServer>[0], model: string) => {
    const server = await startOpenAiServer(options);
    onTestFinished(server.close);
    const apiKeys = options?.keys?.length === 0 ? [] : ['test-key'];
    return { server, provider: createOpenAiProvider({ apiKeys, model, baseUrl: server.url }) };
  };

  it('repeats a request once without an unsupported parameter and never sends that again', async () => {
    const refusedParams = ['max_completion_tokens', 'reasoning_effort', 'stream_options'];
    const { server, provider } = await open({ refusedParams }, 'gpt-5');
    expect(textIn(await eventsOf(provider))).toBe('You said: hello');
    const asked = server.requests.length;
    await eventsOf(provider);
    expect(server.requests.length).toBe(asked + 1);
    expect(server.requests.at(-1)?.body).toMatchObject({ max_tokens: 16_000 });
  });

  it("falls back to the server's own answer limit if it accepts none", async () => {
    const refusedParams = ['max_tokens', 'max_completion_tokens'];
    const { server, provider } = await open({ refusedParams }, 'gpt-4-turbo');
    expect(textIn(await eventsOf(provider))).toBe('You said: hello');
    expect(Object.keys(server.requests.at(-1)?.body ?? {}).join()).not.toContain('max_');
  });

  it('lets two concurrent calls drop an unsupported parameter without failing', async () => {
    const { provider } = await open({ refusedParams: ['stream_options'] }, 'gpt-5');
    const both = await Promise.all([eventsOf(provider), eventsOf(provider)]);
    expect(both.map(textIn)).toEqual(['You said: hello', 'You said: hello']);
  });

  it.each([
    [400, 'this model does not support image input'],
    [400, 'Failed to deserialize the JSON body: messages[1]: unknown variant `image_url`, expected `text`'],
    [404, 'No endpoints found that support image input'],
    [500, 'image input is not supported - hint: you may need to provide the mmproj'],
    [500, 'Unsupported content part type: "image_url"'],
  ])(
    'replaces images by a note for a model that sees none, now and later: %i %s',
    async (status, message) => {
      const { server, provider } = await open({}, 'some-model');
      server.script((body) =>
        JSON.stringify(body.messages).includes('image_url') ? { status, message } : { text: 'I see none.' },
      );
      const image = { type: 'image', mimeType: 'image/png', base64: 'AAAA' } as const;
      const request = aRequest({
        messages: [{ role: 'user', content: [{ type: 'text', text: 'look' }, image] }],
      });
      expect(textIn(await eventsOf(provider, request))).toBe('I see none.');
      expect(textIn(await eventsOf(provider, request))).toBe('I see none.');
      expect(server.requests.length).toBe(3);
      expect(JSON.stringify(server.requests.at(-1)?.body)).toContain('an image, which this model cannot see');
    },
  );

  it.each([
    ['Ollama', 400, 'registry.ollama.ai/library/gemma3:4b does not support tools'],
    ['OpenRouter', 404, 'No endpoints found that support tool use. Try disabling "list".'],
    ['vLLM', 400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'],
    ['llama.cpp', 500, 'tools param requires --jinja flag'],
    ['Groq', 400, '`tool calling` is not supported with this model'],
    ['Gemini', 400, 'Function calling is not enabled for models/gemma-3-27b-it'],
  ])(
    'continues without tools if the model supports none, and describes past calls: %s',
    async (_, status, message) => {
      const { server, provider } = await open({}, 'some-model');
      server.script((body) => ('tools' in body ? { status, message } : { text: 'By heart.' }));
      const call = { type: 'tool_use', id: 'a', name: 'list', input: { path: 'x' } } as const;
      const result = { type: 'tool_result', toolCallId: 'a', content: 'two files', isError: false } as const;
      const request = aRequest({
        system: [
          { text: 'Be kind.', isStable: true },
          { text: 'You have the tool list.', isStable: true, isAboutTools: true },
        ],
        messages: [
          ...aRequest().messages,
          { role: 'assistant', content: [call] },
          { role: 'user', content: [result] },
        ],
        tools: [listTool],
      });
      const ends = [await eventsOf(provider, request), await eventsOf(provider, request)].map((all) =>
        all.at(-1),
      );
      expect(ends).toMatchObject([{ type: 'complete', withoutTools: true }, { withoutTools: true }]);
      expect((await eventsOf(provider)).at(-1)).not.toHaveProperty('withoutTools');
      const [, again, later] = server.requests.map(({ body }) => body.messages);
      expect(server.requests.length).toBe(4);
      expect(again).toEqual(later);
      expect(again).toEqual([
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'hello' },
        { role: 'assistant', content: '[used list: {"path":"x"}]' },
        { role: 'user', content: '[it returned: two files]' },
      ]);
    },
  );

  it('keeps tools if the server refuses something else about them', async () => {
    const { server, provider } = await open({}, 'some-model');
    const message = "No endpoints found that support the provided 'tool_choice' value.";
    server.script([{ status: 404, message }, { text: 'hi' }]);
    const request = aRequest({ tools: [listTool] });
    expect(failureIn(await eventsOf(provider, request))).toMatchObject({ kind: 'failed' });
    await eventsOf(provider, request);
    expect(server.requests.map(({ body }) => 'tools' in body)).toEqual([true, true]);
  });

  it('sends images again after an hour, in case the model sees them by then', async () => {
    const server = await startOpenAiServer();
    onTestFinished(server.close);
    let now = 0;
    const access = {
      apiKeys: ['test-key'],
      model: 'some-model',
      baseUrl: server.url,
      clock: { now: () => now },
    };
    const provider = createOpenAiProvider(access);
    const content = [{ type: 'image', mimeType: 'image/png', base64: 'AAAA' } as const];
    const request = aRequest({ messages: [{ role: 'user', content }] });
    const refusal = { status: 400, message: 'this model does not support image input' };
    server.script([refusal, { text: 'None.' }, { text: 'None.' }, { text: 'A dot.' }]);
    const said: string[] = [];
    for (const at of [0, 3_599_999, 3_600_000]) {
      now = at;
      said.push(textIn(await eventsOf(provider, request)));
    }
    const shown = server.requests.map(({ body }) => JSON.stringify(body).includes('image_url'));
    expect([said, shown]).toEqual([
      ['None.', 'None.', 'A dot.'],
      [true, false, false, true],
    ]);
  });

  it('keeps sending images after one of them was refused', async () => {
    const { server, provider } = await open({}, 'some-model');
    const message = "Invalid 'messages[0].content[0].image_url'. Expected a base64-encoded data URL.";
    server.script([{ status: 400, message }]);
    const image = { type: 'image', mimeType: 'image/png', base64: 'AAAA' } as const;
    const request = aRequest({ messages: [{ role: 'user', content: [image] }] });
    expect(failureIn(await eventsOf(provider, request))).toMatchObject({ kind: 'failed' });
    expect(server.requests.length).toBe(1);
  });

  it('estimates tokens that the server does not count, and marks the estimate', async () => {
    const { provider } = await open({ refusedParams: ['stream_options'] }, 'gpt-5');
    const end = (await eventsOf(provider)).at(-1);
    expect(end).toMatchObject({ type: 'complete', isUncounted: true });
    expect(end?.type === 'complete' && end.usage.inputTokens).toBeGreaterThan(0);
  });

  it("estimates tokens if the server's count is absurd, for example negative in 32 bits", async () => {
    const { server, provider } = await open({}, 'gpt-5');
    server.script([{ text: 'Yes.', usage: { input_tokens: 4_294_967_295 } }]);
    const end = (await eventsOf(provider)).at(-1);
    expect(end).toMatchObject({ type: 'complete', isUncounted: true, usage: { outputTokens: 1 } });
    expect(end?.type === 'complete' && end.cost).toBeLessThan(1_000);
  });

  it('works without a key', async () => {
    const { provider } = await open({ flavour: 'ollama', keys: [] }, 'qwen3');
    expect(textIn(await eventsOf(provider))).toBe('You said: hello');
  });

  it("accepts the server's charge if no price is known", async () => {
    const { provider } = await open({ flavour: 'openrouter' }, 'vendor/model');
    expect((await eventsOf(provider)).at(-1)).toMatchObject({ cost: 250_000 });
  });

  it('requests no reasoning beside tools if the model supports only one of them', async () => {
    const { server, provider } = await open({}, 'gpt-6-luna');
    await eventsOf(provider, aRequest({ tools: [listTool], reasoning: 'high' }));
    await eventsOf(provider, aRequest({ reasoning: 'high' }));
    expect(server.requests.map(({ body }) => body.reasoning_effort)).toEqual(['none', 'high']);
  });

  it('returns signatures with calls to the model that signed them, and to no other', async () => {
    const { server, provider } = await open({ flavour: 'gemini' }, 'gemini-3-pro');
    const toolCalls = ['a', 'b'].map((path) => ({ name: 'list', input: { path } }));
    server.script([{ toolCalls }, { text: 'Two.' }, { text: 'Still two.' }]);
    const request = aRequest({ tools: [listTool] });
    const answer = playEvents(await eventsOf(provider, request));
    const calls = answer.content.filter((block) => block.type === 'tool_use');
    const messages: readonly LlmMessage[] = [
      ...request.messages,
      answer,
      {
        role: 'user',
        content: calls.map(({ id }) => ({
          type: 'tool_result',
          toolCallId: id,
          content: '',
          isError: false,
        })),
      },
    ];
    expect(textIn(await eventsOf(provider, { ...request, messages }))).toBe('Two.');
    const another = createOpenAiProvider({ apiKeys: ['test-key'], model: 'another', baseUrl: server.url });
    const later = [...messages, aUserMessage('and now?')];
    expect(textIn(await eventsOf(another, { ...request, messages: later }))).toBe('Still two.');
    const given = server.requests.map(({ body }) => JSON.stringify(body).includes('extra_content'));
    expect(given).toEqual([false, true, false]);
  });

  it("continues with another model's calls once signatures are demanded", async () => {
    const { server, provider } = await open(
      { flavour: 'gemini', mayRefuse: 'calls without a signature' },
      'gemini-3-pro',
    );
    const input = { path: 'a' };
    const messages: readonly LlmMessage[] = [
      aUserMessage('go'),
      {
        role: 'assistant',
        content: ['a', 'b'].map((id) => ({ type: 'tool_use', id, name: 'list', input })),
      },
      {
        role: 'user',
        content: ['a', 'b'].map((toolCallId) => ({
          type: 'tool_result',
          toolCallId,
          content: 'x',
          isError: false,
        })),
      },
    ];
    server.script(() => ({ text: 'Two.' }));
    for (const asked of [2, 3]) {
      expect(textIn(await eventsOf(provider, aRequest({ messages, tools: [listTool] })))).toBe('Two.');
      expect(server.requests.length).toBe(asked);
    }
  });

  it('continues with messages without reasoning once the server demands it', async () => {
    const { server, provider } = await open({}, 'deepseek-v4-pro');
    const message = 'The `reasoning_content` in the thinking mode must be passed back to the API.';
    const answered: LlmMessage = { role: 'assistant', content: [{ type: 'text', text: 'Hello.' }] };
    const messages = [aUserMessage('hi'), answered, aUserMessage('and now?')];
    server.script((body) =>
      JSON.stringify(body.messages).includes('"reasoning_content":" "')
        ? { text: 'Now.' }
        : { status: 400, message },
    );
    expect(textIn(await eventsOf(provider, aRequest({ messages })))).toBe('Now.');
    expect(server.requests.length).toBe(2);
  });

  it('recognizes a wrong key by the words alone and tries the next one', async () => {
    const server = await startOpenAiServer({ flavour: 'gemini' });
    onTestFinished(server.close);
    const access = { model: 'gemini-3-pro', baseUrl: server.url };
    const both = createOpenAiProvider({ ...access, apiKeys: ['wrong-key', 'test-key'] });
    expect(textIn(await eventsOf(both))).toBe('You said: hello');
    expect(server.requests.map(({ keyIndex }) => keyIndex)).toEqual([-1, 0]);
    const wrong = createOpenAiProvider({ ...access, apiKeys: ['wrong-key'] });
    expect(failureIn(await eventsOf(wrong))).toMatchObject({ kind: 'unauthorised', isFree: true });
  });

  it('reads a refusal inside a list', async () => {
    const { server, provider } = await open({ flavour: 'gemini' }, 'gemini-3-pro');
    const message = 'The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).';
    server.script([{ status: 400, message }]);
    expect(failureIn(await eventsOf(provider))).toMatchObject({ kind: 'overflow', detail: `400 ${message}` });
  });

  it('joins the pieces of a call even if each has a different id', async () => {
    const { server, provider } = await open({}, 'some-model');
    const pieces = [
      { index: 0, id: 'a', type: 'function', function: { name: 'list', arguments: '' } },
      { index: 0, id: 'b', function: { arguments: '{"path":' } },
      { index: 0, id: 'c', function: { arguments: '"x"}' } },
    ];
    server.script([streamOf(pieces.map((call) => ({ tool_calls: [call] })))]);
    const { content } = playEvents(await eventsOf(provider, aRequest({ tools: [listTool] })));
    expect(content).toEqual([{ type: 'tool_use', id: 'a', name: 'list', input: { path: 'x' } }]);
  });

  it('separates calls that share an id or have numbers as ids', async () => {
    const { server, provider } = await open({}, 'some-model');
    for (const id of ['same', 7]) {
      const piece = (index: number, args: string) => ({
        tool_calls: [{ index, id, type: 'function', function: { name: 'list', arguments: args } }],
      });
      server.script([streamOf([piece(0, '{"path":"x"}'), piece(1, '{"path":"y"}')])]);
      const { content } = playEvents(await eventsOf(provider, aRequest({ tools: [listTool] })));
      const calls = content.filter((block) => block.type === 'tool_use');
      expect(calls.map(({ input }) => input)).toEqual([{ path: 'x' }, { path: 'y' }]);
      expect(new Set(calls.map((call) => call.id)).size).toBe(2);
    }
  });

  it.each([
    ['without empty lines between them', 'data: ', '\ndata: '],
    ['with nothing between them', 'data: ', ''],
    ['with no line between them', 'data: ', 'data: '],
    ['as lines of JSON', '', '\n'],
    ['after a first one without a field', '', '\n\ndata: '],
  ])('reads chunks %s', async (_how, before, between) => {
    const { server, provider } = await open({}, 'some-model');
    const chunk = (choice: object) => JSON.stringify({ model: 'some-model', choices: [choice] });
    const chunks = ['one ', '}{"two":[DONE]', '} {"'].map((content) => chunk({ delta: { content } }));
    const end = chunk({ delta: {}, finish_reason: 'stop' });
    server.script([{ garbage: `${before}${[...chunks, end, '[DONE]'].join(between)}\n\n` }]);
    const events = await eventsOf(provider);
    expect(textIn(events)).toBe('one }{"two":[DONE]} {"');
    expect(events.at(-1)).toMatchObject({ type: 'complete', finish: 'end_turn' });
  });

  it('joins text that arrives in parts', async () => {
    const { server, provider } = await open({}, 'some-model');
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] };
    server.script([streamOf([{ content: [thinking] }, { content: [{ type: 'text', text: 'Yes.' }] }])]);
    expect(textIn(await eventsOf(provider))).toBe('Yes.');
  });

  it('separates thinking inside the text from the answer', async () => {
    const { server, provider } = await open({}, 'some-model');
    const whole = '\n<think>\nA greeting. <b> </thin\n</think>\n\nHello.';
    for (let size = 1; size <= whole.length; size += 1) {
      const pieces = whole.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
      server.script([streamOf(pieces.map((content) => ({ content })))]);
      const events = await eventsOf(provider);
      const thoughts = events.flatMap((event) => (event.type === 'thinking_delta' ? event.thinking : []));
      expect([thoughts.join(''), textIn(events)]).toEqual(['A greeting. <b> </thin\n', 'Hello.']);
    }
    server.script([{ text: whole }]);
    expect(await provider.send(aRequest(), new AbortController().signal)).toMatchObject({ text: 'Hello.' });
  });

  it('drops reasoning that is nested too deeply for a later request', async () => {
    const { server, provider } = await open({}, 'some-model');
    const nested = (depth: number) => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`);
    const signed = async (depth: number) => {
      server.script([
        streamOf([{ reasoning: 'Hm.', reasoning_details: [nested(depth)] }, { content: 'Yes.' }]),
      ]);
      return playEvents(await eventsOf(provider)).content.length === 2;
    };
    expect([await signed(3), await signed(3_000)]).toEqual([true, false]);
  });

  it('keeps text that only starts like thinking, and drops thinking that never ends', async () => {
    const { server, provider } = await open({}, 'some-model');
    const said = async (...pieces: readonly string[]) => {
      server.script([streamOf(pieces.map((content) => ({ content })))]);
      return textIn(await eventsOf(provider));
    };
    expect(await said(' <th', 'e> 1')).toBe(' <the> 1');
    expect(await said('<thi')).toBe('<thi');
    expect(await said('  ')).toBe('  ');
    expect(await said('See <think>', 'this</think>')).toBe('See <think>this</think>');
    expect(await said('<think>a thought', ' without an end</th')).toBe('');
    server.script([streamOf([{ content: '<think>\n\n</think>\n\nYes.' }])]);
    const types = (await eventsOf(provider)).map(({ type }) => type);
    expect(types).toEqual(['content_start', 'content_delta', 'content_stop', 'complete']);
  });

  it.each([
    ['insufficient_system_resource', 'later'],
    ['sensitive', undefined],
  ])('fails a whole answer that ends with %s', async (stopReason, retry) => {
    const { server, provider } = await open({}, 'some-model');
    server.script([{ text: 'Half an ans', stopReason }]);
    const sent = provider.send(aRequest(), new AbortController().signal);
    await expect(sent).rejects.toMatchObject(retry ? { retry: { kind: retry } } : { code: 'model_refused' });
  });

  it.each([
    [{ status: 400, errorCode: 'context_length_exceeded' }, 'overflow'],
    [{ status: 400, message: 'the request exceeds the available context size' }, 'overflow'],
    [{ status: 400, message: "This model's maximum prompt length is 131072." }, 'overflow'],
    [
      { status: 429, message: 'Request too large for gpt-5 on tokens per min (TPM): Limit 30000' },
      'overflow',
    ],
    [{ status: 403, message: 'Your API key was reported as leaked.' }, 'unauthorised'],
    [{ text: 'so', stopReason: 'insufficient_system_resource' }, 'failed'],
    [{ status: 429, errorCode: 'insufficient_quota' }, 'unauthorised'],
    [{ stopReason: 'content_filter' }, 'refused'],
    [{ stopReason: 'sensitive' }, 'refused'],
  ] as const)("reads refusals in the server's own words: %j", async (reply, kind) => {
    const { server, provider } = await open({}, 'gpt-5');
    server.script([reply]);
    expect((await eventsOf(provider)).at(-1)).toMatchObject({ type: 'error', failure: { kind } });
  });
});

/** Returns a stream of these deltas, as a server might send it. */
function streamOf(deltas: readonly object[]): Reply {
  const finish = { delta: {}, finish_reason: 'stop' };
  const chunks = [...deltas.map((delta) => ({ delta })), finish].map((choice) =>
    JSON.stringify({ model: 'some-model', choices: [choice] }),
  );
  return { garbage: [...chunks, '[DONE]'].map((each) => `data: ${each}\n\n`).join('') };
}
