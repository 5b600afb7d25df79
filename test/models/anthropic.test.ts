import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { LlmMessage, ModelEvent, ModelRequest } from '#contracts/model.ts';
import { outboundFetch } from '../../src/http/outbound-fetch.ts';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { playEvents } from '../agent/support/llm-events.ts';
import { createGate } from '../platforms/anthropic/gate.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import type { Reply } from '../platforms/anthropic/turn.ts';
import { blocksOf } from '../platforms/anthropic/wire.ts';
import { aRequest, aUserMessage, eventsOf, failureIn, listTool, textIn } from './builders.ts';

let server: AnthropicServer;
beforeAll(async () => {
  server = await startAnthropicServer({ keys: ['key-a', 'key-b'] });
});
afterAll(() => server.close());
beforeEach(() => server.script(() => ({ text: 'ok' })));

function aProvider(model = 'claude-sonnet-5-5', apiKeys: readonly string[] = ['key-a']) {
  return createAnthropicProvider({ model, apiKeys, baseUrl: server.url });
}

const lastBody = () => {
  const entry = server.requests.at(-1);
  if (entry === undefined) throw new Error('no request came');
  return entry.body;
};

function resultFor(message: LlmMessage, content: string): LlmMessage {
  const results = message.content.flatMap((block) =>
    block.type === 'tool_use'
      ? [{ type: 'tool_result' as const, toolCallId: block.id, content, isError: false }]
      : [],
  );
  return { role: 'user', content: results };
}

describe('answers', () => {
  it('streams an answer piece by piece and ends with its usage', async () => {
    server.script([{ chunks: ['Good ', 'morning', ' ☀️'], usage: { input_tokens: 12, output_tokens: 5 } }]);
    const events = await eventsOf(aProvider());
    expect(events).toEqual([
      { type: 'content_start' },
      { type: 'content_delta', text: 'Good ' },
      { type: 'content_delta', text: 'morning' },
      { type: 'content_delta', text: ' ☀️' },
      { type: 'content_stop' },
      {
        type: 'complete',
        cost: 74,
        finish: 'end_turn',
        model: 'claude-sonnet-5-5',
        usage: { inputTokens: 12, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0 },
      },
    ]);
  });

  it('reads tool calls whose input arrives in pieces', async () => {
    const input = { path: 'notes/été', deep: [1, { a: null }] };
    server.script([{ text: 'looking', toolCalls: [{ name: 'list', input }, { name: 'list' }] }]);
    const events = await eventsOf(aProvider(), aRequest({ tools: [listTool] }));
    const calls = playEvents(events).content.filter((block) => block.type === 'tool_use');
    expect(calls.map((call) => call.input)).toEqual([input, {}]);
    expect(new Set(calls.map((call) => call.id)).size).toBe(2);
    expect(events.at(-1)).toMatchObject({ type: 'complete', finish: 'tool_use' });
  });

  it('gives a tool call that streamed no input valid JSON', async () => {
    server.script([{ toolCalls: [{ name: 'list', inputJson: '' }] }]);
    const events = await eventsOf(aProvider(), aRequest({ tools: [listTool] }));
    expect(playEvents(events).content).toMatchObject([{ type: 'tool_use', input: {} }]);
  });

  it.each([
    ['end_turn', 'end_turn'],
    ['stop_sequence', 'end_turn'],
    ['max_tokens', 'max_tokens'],
    ['model_context_window_exceeded', 'max_tokens'],
    ['tool_use', 'tool_use'],
  ])('finishes an answer that stops for %s as %s', async (stopReason, finish) => {
    server.script([{ text: 'x', stopReason }]);
    expect((await eventsOf(aProvider())).at(-1)).toMatchObject({ type: 'complete', finish });
  });

  it('ends an answer that is a refusal as refused', async () => {
    server.script([{ text: 'I', stopReason: 'refusal' }]);
    const counted = { usage: { outputTokens: expect.any(Number) }, model: 'claude-sonnet-5-5' };
    expect(failureIn(await eventsOf(aProvider()))).toMatchObject({ kind: 'refused', counted });
  });

  it('returns a whole answer from send', async () => {
    server.script([{ text: 'A short title', usage: { output_tokens: 3 } }]);
    const answer = await aProvider().send(aRequest(), new AbortController().signal);
    expect(answer).toMatchObject({
      text: 'A short title',
      model: 'claude-sonnet-5-5',
      usage: { outputTokens: 3 },
    });
    expect(lastBody().stream).toBe(false);
  });

  it('passes an answer on before its connection ends, which an abort then does not cut', async () => {
    const linger = createGate();
    server.script([{ text: 'all of it', linger }]);
    const answers: Response[] = [];
    const fetch: typeof outboundFetch = async (...call) => {
      const answer = await outboundFetch(...call);
      answers.push(answer);
      return answer;
    };
    const call = new AbortController();
    const access = { apiKeys: ['key-a'], baseUrl: server.url, fetch };
    const provider = createAnthropicProvider({ model: 'claude-sonnet-5-5', ...access });
    const events = await eventsOf(provider, aRequest(), call.signal);
    expect(events.at(-1)).toMatchObject({ type: 'complete' });
    // The body of a lean response is Node's own stream.
    const ended = once(answers[0]?.body as unknown as Readable, 'end');
    call.abort();
    linger.open();
    await ended;
  });

  it('reuses the connection for the call that follows an answer with tool calls', async () => {
    const provider = aProvider();
    await eventsOf(provider);
    const before = server.connectionCount();
    const toolCalls = [{ name: 'list', input: { path: '.' } }];
    server.script(() => ({ chunks: ['a', 'b'], chunkDelayMs: 2, toolCalls }));
    for (let n = 0; n < 5; n += 1) {
      for await (const event of provider.stream(
        aRequest({ tools: [listTool] }),
        new AbortController().signal,
      )) {
        if (event.type === 'complete') break;
      }
    }
    expect(server.connectionCount()).toBe(before);
  });

  it('releases a connection that stays open after a whole answer', async () => {
    const linger = createGate();
    server.script([{ text: 'all of it', toolCalls: [{ name: 'list' }], linger }]);
    const reading = eventsOf(aProvider(), aRequest({ tools: [listTool] }));
    // Until then, it hopes to reuse the connection.
    expect(await Promise.race([reading, pause(1_000, 'it waits')])).toBe('it waits');
    expect((await reading).at(-1)).toMatchObject({ type: 'complete', finish: 'tool_use' });
    linger.open();
  });
});

describe('interrupted streams', () => {
  const chunks = ['Once ', 'upon ', 'a time'];

  it.each<readonly [string, Reply]>([
    ['ends politely', { chunks, endAfter: 3 }],
    ['is cut', { chunks, cutAfter: 3 }],
  ])('accepts an answer whose stream breaks off after its last block and %s', async (_how, reply) => {
    server.script([reply]);
    const events = await eventsOf(aProvider());
    expect(textIn(events)).toBe('Once upon a time');
    expect(events.at(-1)).toMatchObject({ type: 'complete', finish: 'end_turn' });
  });

  it('accepts an answer with a whole call whose stream breaks off', async () => {
    server.script([{ text: 'I look.', toolCalls: [{ name: 'list', input: {} }], endAfter: 2 }]);
    const events = await eventsOf(aProvider(), aRequest({ tools: [listTool] }));
    expect(events.at(-1)).toMatchObject({ type: 'complete' });
  });

  it.each<readonly [string, Reply]>([
    ['in its text', { chunks, endAfter: 2 }],
    ['after its thinking', { thinking: 'Hm.', text: 'Well', endAfter: 1 }],
    [
      'after a call whose arguments never came',
      { toolCalls: [{ name: 'list', inputJson: '' }], endAfter: 0 },
    ],
    ['with an error of the platform', { chunks, midStreamError: 'overloaded_error', afterChunks: 3 }],
  ])('fails an answer that breaks off %s, and allows another request', async (_where, reply) => {
    server.script([reply]);
    const events = await eventsOf(aProvider(), aRequest({ tools: [listTool], reasoning: 'low' }));
    expect(failureIn(events)?.retry).toEqual({ kind: 'later' });
  });
});

describe('unsendable requests', () => {
  it('reports a fault of its own as such and never as a busy model', async () => {
    const before = server.requests.length;
    const schema: Record<string, unknown> = {};
    schema.itself = schema;
    const tools = [{ ...listTool, inputSchema: schema }];
    const failure = failureIn(await eventsOf(aProvider(), aRequest({ tools })));
    expect(failure).toMatchObject({ kind: 'unsendable', isLocal: true });
    expect(failure?.detail).toContain('TypeError');
    expect(failure?.retry).toBeUndefined();
    expect(server.requests).toHaveLength(before);
  });

  it.each([
    ['messages.3.content.1: no such thing', { kind: 'unsendable', messageIndex: 3 }],
    ['messages: text content blocks must be non-empty', { kind: 'unsendable' }],
    ['Could not process image', { kind: 'unsendable' }],
    ['this model does not support image input', { kind: 'unsendable' }],
    ['max_tokens: too many', { kind: 'failed' }],
  ])('recognizes a refusal of the messages by its words: %s', async (message, expected) => {
    server.script([{ status: 400, message }]);
    expect(failureIn(await eventsOf(aProvider()))).toMatchObject(expected);
  });
});

describe('thinking', () => {
  it.each(['claude-haiku-4-5', 'claude-sonnet-4-6', 'claude-opus-5', 'claude-sonnet-5-5', 'claude-opus-5-5'])(
    'sends the thinking of %s back with its signature in the next turn',
    async (model) => {
      server.script([
        {
          thinking: 'The person wants a list.',
          text: 'I look.',
          toolCalls: [{ name: 'list', input: { path: '.' } }],
        },
        { text: 'Two files.' },
      ]);
      const provider = aProvider(model);
      const request = aRequest({ tools: [listTool], reasoning: 'low' });
      const first = playEvents(await eventsOf(provider, request));
      expect(first.content[0]).toMatchObject({ type: 'thinking', thinking: 'The person wants a list.' });
      const messages = [...request.messages, first, resultFor(first, 'a\nb')];
      expect(textIn(await eventsOf(provider, { ...request, messages }))).toBe('Two files.');
      expect(lastBody().messages[1]?.content[0]).toMatchObject({
        type: 'thinking',
        signature: expect.any(String),
      });
    },
  );

  it('sends redacted thinking back unchanged', async () => {
    const messages: LlmMessage[] = [
      aUserMessage('a'),
      {
        role: 'assistant',
        content: [
          {
            type: 'thinking',
            thinking: '',
            signature: 'anthropic/claude-sonnet-5-5\nredacted_thinking:c2VjcmV0',
            model: 'claude-sonnet-5-5',
          },
          { type: 'text', text: 'b' },
        ],
      },
      aUserMessage('c'),
    ];
    await eventsOf(aProvider(), aRequest({ messages, reasoning: 'low' }));
    expect(lastBody().messages[1]?.content[0]).toEqual({ type: 'redacted_thinking', data: 'c2VjcmV0' });
  });

  it.each(['claude-sonnet-5-5', 'claude-opus-5-5', 'claude-haiku-5-5'])(
    'continues a conversation with thinking of %s after the prompt before it has changed',
    async (model) => {
      server.script([{ thinking: 'Hm.', text: 'one' }, { text: 'two' }, { text: 'three' }]);
      const provider = aProvider(model);
      const at = (time: string, extra: Partial<ModelRequest>) =>
        aRequest({ system: [{ text: `It is ${time}.`, isStable: false }], ...extra });
      const first = playEvents(await eventsOf(provider, at('nine', { reasoning: 'low' })));
      const messages = [aUserMessage('hello'), first, aUserMessage('and now?')];
      expect(textIn(await eventsOf(provider, at('ten', { messages, reasoning: 'low' })))).toBe('two');
      expect(textIn(await eventsOf(provider, at('eleven', { messages })))).toBe('three');
    },
  );

  it('requests thinking by budget or by effort, as the model expects', async () => {
    await eventsOf(aProvider('claude-haiku-4-5'), aRequest({ reasoning: 'low', maxTokens: 8000 }));
    expect(lastBody()).toMatchObject({
      thinking: { type: 'enabled', budget_tokens: 2000 },
      max_tokens: 8000,
    });
    await eventsOf(aProvider('claude-opus-5'), aRequest({ reasoning: 'medium' }));
    expect(lastBody()).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } });
  });

  it('turns thinking off as the model expects, or keeps it low where it cannot be off', async () => {
    const thinkingOf = async (model: string) => {
      await eventsOf(aProvider(model));
      return lastBody().thinking?.type;
    };
    expect(await thinkingOf('claude-haiku-4-5')).toBeUndefined();
    expect(await thinkingOf('claude-sonnet-5-5')).toBe('between_tools');
    expect(await thinkingOf('claude-haiku-5-5')).toBe('disabled');
    expect(await thinkingOf('claude-opus-5-5')).toBe('adaptive');
    expect(lastBody().output_config?.effort).toBe('low');
  });

  it('leaves out a thinking budget in a tool turn that began without thinking', async () => {
    const asking: LlmMessage = {
      role: 'assistant',
      content: [{ type: 'tool_use', id: 'toolu_x', name: 'list', input: {} }],
    };
    const messages = [aUserMessage('a'), asking, resultFor(asking, 'b')];
    const events = await eventsOf(
      aProvider('claude-haiku-4-5'),
      aRequest({ messages, tools: [listTool], reasoning: 'low' }),
    );
    expect(textIn(events)).toBe('ok');
    expect(lastBody().thinking).toBeUndefined();
  });
});

describe('requests', () => {
  it('sends images and tool results, with failed results marked', async () => {
    const messages: LlmMessage[] = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'see' },
          { type: 'image', mimeType: 'image/png', base64: 'iVBORw0KGgo=' },
        ],
      },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_y', name: 'list', input: {} }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', toolCallId: 'toolu_y', content: 'no such folder', isError: true },
          { type: 'text', text: 'never mind' },
        ],
      },
    ];
    expect(textIn(await eventsOf(aProvider(), aRequest({ messages, tools: [listTool] })))).toBe('ok');
    const [first, , third] = lastBody().messages.map(blocksOf);
    expect(first?.[1]).toMatchObject({ source: { type: 'base64', media_type: 'image/png' } });
    expect(third?.[0]).toMatchObject({ is_error: true });
  });

  it('sends nothing that the API refuses: blank text, empty messages, invalid tool input', async () => {
    const messages: LlmMessage[] = [
      { role: 'user', content: [{ type: 'text', text: '  ' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: '' },
          { type: 'tool_use', id: 'toolu_z', name: 'list', input: 'half {' },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', toolCallId: 'toolu_z', content: '', isError: false }],
      },
    ];
    const system = [{ text: '', isStable: true }];
    expect(textIn(await eventsOf(aProvider(), aRequest({ messages, system, tools: [listTool] })))).toBe('ok');
  });

  it('marks four cache points: tools, stable system and the last two user turns', async () => {
    const talk = ['a', 'b', 'c'].flatMap((text): LlmMessage[] => [
      aUserMessage(text),
      { role: 'assistant', content: [{ type: 'text', text: 'x' }] },
    ]);
    const system = [
      { text: 'identity', isStable: true },
      { text: 'rules', isStable: true },
      { text: 'it is nine', isStable: false },
    ];
    const request = aRequest({
      system,
      messages: [...talk, aUserMessage('d')],
      tools: [listTool, { ...listTool, name: 'last' }],
    });
    await eventsOf(aProvider(), request);
    const body = lastBody();
    const isMarked = (block: { cache_control?: unknown }) => block.cache_control !== undefined;
    expect(body.tools?.map(isMarked)).toEqual([false, true]);
    expect(Array.isArray(body.system) && body.system.map(isMarked)).toEqual([false, true, false]);
    expect(body.messages.map((message) => blocksOf(message).some(isMarked))).toEqual([
      false,
      false,
      false,
      false,
      true,
      false,
      true,
    ]);
  });

  it('reads its prefix from the cache in the next turn', async () => {
    const system = [{ text: 'stable '.repeat(1000), isStable: true }];
    const usage = async (messages: readonly LlmMessage[]) => {
      const last = (await eventsOf(aProvider(), aRequest({ system, messages }))).at(-1);
      return last?.type === 'complete' ? last.usage : undefined;
    };
    const first = await usage([aUserMessage('one')]);
    const second = await usage([
      aUserMessage('one'),
      { role: 'assistant', content: [{ type: 'text', text: 'ok' }] },
      aUserMessage('two'),
    ]);
    expect(first?.cacheWriteTokens).toBeGreaterThan(1000);
    expect(second?.cacheReadTokens).toBe(first?.cacheWriteTokens);
    expect(second?.cacheWriteTokens).toBeLessThan(100);
  });
});

describe('failures', () => {
  it.each([
    [401, 'unauthorised', undefined],
    [402, 'unauthorised', undefined],
    [403, 'unauthorised', undefined],
    [404, 'failed', undefined],
    [413, 'overflow', undefined],
    [429, 'overloaded', 'later'],
    [500, 'overloaded', 'later'],
    [529, 'overloaded', 'later'],
  ])('reads status %i as %s', async (status, kind, retry) => {
    server.script([{ status }]);
    const failure = failureIn(await eventsOf(aProvider()));
    expect(failure?.kind).toBe(kind);
    expect(failure?.retry?.kind).toBe(retry);
  });

  it('says how long the API asks to wait', async () => {
    server.script([
      { status: 429, retryAfter: 7 },
      { status: 429, retryAfter: new Date(Date.now() + 30_000).toUTCString() },
    ]);
    expect(failureIn(await eventsOf(aProvider()))?.retry).toEqual({ kind: 'later', afterMs: 7000 });
    const later = failureIn(await eventsOf(aProvider()))?.retry;
    expect(later?.kind === 'later' && later.afterMs).toBeGreaterThan(25_000);
  });

  it('reads a prompt that is too long as overflow', async () => {
    server.script([{ status: 400, message: 'prompt is too long: 250000 tokens > 200000 maximum' }]);
    expect(failureIn(await eventsOf(aProvider()))?.kind).toBe('overflow');
  });

  it.each([
    ['a cut stream', { text: 'never whole', cutAfter: 0 }, 'failed'],
    ['a stream cut in the middle', { chunks: ['half ', 'whole'], cutAfter: 1 }, 'failed'],
    ['a stream that ends without an end', { chunks: ['half ', 'whole'], endAfter: 1 }, 'failed'],
    ['garbage', { garbage: 'event: message_start\ndata: {"type": oh no\n\n' }, 'failed'],
    ['nothing but an end', { garbage: '' }, 'failed'],
    ['an error inside the stream', { midStreamError: 'overloaded_error', text: 'x' }, 'overloaded'],
    ['a closed connection', { disconnect: true as const }, 'overloaded'],
  ])('turns %s into one error event that allows another request', async (_, fault, kind) => {
    server.script([fault]);
    const events = await eventsOf(aProvider());
    expect(events.filter((event) => event.type === 'error' || event.type === 'complete')).toHaveLength(1);
    expect(failureIn(events)).toMatchObject({ kind, retry: { kind: 'later' } });
  });

  it('reports an unreachable host as overloaded and names the cause', async () => {
    const gone = await startAnthropicServer();
    await gone.close();
    const provider = createAnthropicProvider({
      model: 'claude-sonnet-5-5',
      apiKeys: ['k'],
      baseUrl: gone.url,
    });
    expect(failureIn(await eventsOf(provider))).toMatchObject({
      kind: 'overloaded',
      detail: 'no connection: ECONNREFUSED',
    });
  });

  it('keeps keys and stream contents out of errors and the console', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    server.script([{ garbage: 'event: message_start\ndata: {"my diary": oh no\n\n' }, { status: 401 }]);
    const garbage = failureIn(await eventsOf(aProvider()));
    const refused = failureIn(await eventsOf(aProvider()));
    expect(`${garbage?.detail} ${refused?.detail}`).not.toMatch(/diary|key-a/);
    expect(printed).not.toHaveBeenCalled();
    printed.mockRestore();
  });

  it('throws a failure from send with its code and retry advice', async () => {
    server.script([{ status: 529, retryAfter: 3 }, { status: 400 }]);
    const send = () => aProvider().send(aRequest(), new AbortController().signal);
    await expect(send()).rejects.toMatchObject({
      code: 'model_overloaded',
      retry: { kind: 'later', afterMs: 3000 },
    });
    await expect(send()).rejects.toMatchObject({ code: 'model_failed', retry: { kind: 'never' } });
  });
});

describe('aborts', () => {
  it('makes no request after an abort', async () => {
    const before = server.requests.length;
    expect(failureIn(await eventsOf(aProvider(), aRequest(), AbortSignal.abort()))?.kind).toBe('aborted');
    expect(server.requests).toHaveLength(before);
  });

  it('ends a silent stream when aborted', async () => {
    server.script([{ chunks: ['so ', 'far'], silentAfter: 1 }]);
    const abort = new AbortController();
    const events: ModelEvent[] = [];
    for await (const event of aProvider().stream(aRequest(), abort.signal)) {
      events.push(event);
      if (event.type === 'content_delta') abort.abort();
    }
    expect(textIn(events)).toBe('so ');
    expect(failureIn(events)?.kind).toBe('aborted');
  });

  it('ends an unanswered call when aborted', async () => {
    server.script([{ hang: true }]);
    const abort = new AbortController();
    const count = server.requests.length;
    const events = eventsOf(aProvider(), aRequest(), abort.signal);
    await server.waitForRequest(count + 1);
    abort.abort();
    expect(failureIn(await events)?.kind).toBe('aborted');
  });

  it('ends a stream when aborted between two chunks', async () => {
    const gate = createGate();
    server.script([{ chunks: ['a', 'b', 'c'], hold: { gate, afterChunks: 2 } }]);
    const abort = new AbortController();
    const events = eventsOf(aProvider(), aRequest(), abort.signal);
    await gate.reached;
    abort.abort();
    gate.open();
    expect(failureIn(await events)?.kind).toBe('aborted');
  });
});

describe('several keys', () => {
  const keysUsed = (from: number) => server.requests.slice(from).map((entry) => entry.keyIndex);

  it('tries keys in order after 401 and keeps the one that worked', async () => {
    const provider = aProvider('claude-sonnet-5-5', ['wrong', 'key-b']);
    const from = server.requests.length;
    expect(textIn(await eventsOf(provider))).toBe('ok');
    expect(textIn(await eventsOf(provider))).toBe('ok');
    expect(keysUsed(from)).toEqual([-1, 1, 1]);
  });

  it.each([
    ['billing', { status: 402 }],
    ['an empty balance', { status: 400, message: 'Your credit balance is too low to access the API.' }],
    ['quota', { status: 429, errorCode: 'enforced_spend_limit_reached' }],
  ])('tries the next key after a failure of %s', async (_, fault) => {
    server.script([fault, { text: 'ok' }]);
    const from = server.requests.length;
    expect(textIn(await eventsOf(aProvider('claude-sonnet-5-5', ['key-a', 'key-b'])))).toBe('ok');
    expect(keysUsed(from)).toEqual([0, 1]);
  });

  it('moves each of several concurrent calls on from its own refused key', async () => {
    const provider = aProvider('claude-sonnet-5-5', ['wrong', 'key-b']);
    const answers = await Promise.all([1, 2, 3].map(() => eventsOf(provider)));
    expect(answers.map(textIn)).toEqual(['ok', 'ok', 'ok']);
  });

  it('tries each key once if all are refused', async () => {
    const from = server.requests.length;
    const failure = failureIn(await eventsOf(aProvider('claude-sonnet-5-5', ['wrong', 'worse', 'worst'])));
    expect(failure).toMatchObject({ kind: 'unauthorised' });
    expect(keysUsed(from)).toEqual([-1, -1, -1]);
  });

  it('keeps the key after a rate limit', async () => {
    server.script([{ status: 429 }]);
    const from = server.requests.length;
    await eventsOf(aProvider('claude-sonnet-5-5', ['key-a', 'key-b']));
    expect(keysUsed(from)).toEqual([0]);
  });
});
