/**
 * What every provider guarantees, whatever its API is like: events in their grammar, one end, tools and results paired,
 * failures by kind, and an abort that ends the stream at any event.
 */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AssistantBlock, LlmMessage, LlmProvider, ModelEvent, ModelRequest } from '#contracts/model.ts';
import { playEvents } from '../agent/support/llm-events.ts';
import type { Reply } from '../platforms/anthropic/turn.ts';
import { aPng } from '../support/one-pixel.ts';
import { aRequest, aUserMessage, eventsOf, failureIn, listTool, textIn } from './builders.ts';

export type ProviderStage = {
  /** Sets the server's next answers; absent if the model makes up its own. */
  script?(replies: readonly Reply[]): void;
  provider(keys?: readonly string[]): LlmProvider;
  /** Returns the requests that the strict server refused. */
  refusals(): readonly string[];
  /** Returns the bodies of all requests so far. */
  bodies(): readonly unknown[];
  close(): Promise<void>;
};

export type ProviderFacts = {
  /** Whether thinking comes back signed, to be sent to the model again. */
  readonly signs: boolean;
  /** The cost of 1,000 prompt tokens, of which 200 are cached, and 100 answer tokens; micro-dollars. */
  readonly cost: number;
  /** For a model that can't be scripted: a request that it answers with two calls. */
  readonly callingRequest?: ModelRequest;
};

const path = (name: string) => ({ name: 'list', input: { path: name } });

export function providerContract(
  name: string,
  open: () => Promise<ProviderStage>,
  facts: ProviderFacts,
): void {
  describe(`${name} keeps the contract of a provider`, () => {
    let stage: ProviderStage;
    beforeAll(async () => {
      stage = await open();
    });
    afterAll(() => stage.close());
    const script = (...replies: Reply[]) => stage.script?.(replies);
    const { callingRequest = aRequest({ tools: [listTool], reasoning: 'low' }) } = facts;
    const isScripted = facts.callingRequest === undefined;

    it('closes every block that it opens, and continues after the results of its calls', async () => {
      script({ text: 'I look.', toolCalls: [path('a'), path('b')] }, { text: 'Two.' });
      const events = await eventsOf(stage.provider(), callingRequest);
      checkGrammar(events);
      const answer = playEvents(events);
      const calls = answer.content.filter((block) => block.type === 'tool_use');
      expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
      const messages = [...callingRequest.messages, answer, resultsFor(calls)];
      const last = await eventsOf(stage.provider(), { ...callingRequest, messages });
      checkGrammar(last);
      expect(textIn(last)).not.toBe('');
      expect(last.at(-1)).toMatchObject({ finish: 'end_turn' });
    });

    it.runIf(isScripted)('streams an answer with its usage, cost and model', async () => {
      const usage = { input_tokens: 800, cache_read_input_tokens: 200, output_tokens: 100 };
      script({ chunks: ['Hel', 'lo ', 'you'], usage });
      const events = await eventsOf(stage.provider());
      expect(textIn(events)).toBe('Hello you');
      expect(events[0]).toEqual({ type: 'content_start' });
      expect(events.filter(isEnd)).toHaveLength(1);
      const { cost } = facts;
      expect(events.at(-1)).toMatchObject({ type: 'complete', finish: 'end_turn', cost });
      const end = events.at(-1);
      if (end?.type !== 'complete') throw new Error('no end');
      const { inputTokens, cacheReadTokens, outputTokens } = end.usage;
      expect([inputTokens + cacheReadTokens, outputTokens]).toEqual([1000, 100]);
    });

    it.runIf(isScripted)('separates parallel calls, and its history is accepted', async () => {
      script(
        { thinking: 'Two at once.', text: 'I look.', toolCalls: [path('a'), path('b'), { name: 'list' }] },
        { text: 'Three.' },
      );
      const request = aRequest({ tools: [listTool], reasoning: 'low' });
      const first = await eventsOf(stage.provider(), request);
      expect(first.at(-1)).toMatchObject({ type: 'complete', finish: 'tool_use' });
      const answer = playEvents(first);
      const calls = answer.content.filter((block) => block.type === 'tool_use');
      expect(calls.map(({ input }) => input)).toEqual([{ path: 'a' }, { path: 'b' }, {}]);
      expect(new Set(calls.map(({ id }) => id)).size).toBe(3);
      const messages = [...request.messages, answer, resultsFor(calls), aUserMessage('and?')];
      // Adjacent messages with the same role become one.
      const [last, before] = [messages.pop(), messages.pop()];
      if (last?.role === 'user' && before?.role === 'user')
        messages.push({ role: 'user', content: [...before.content, ...last.content] });
      const second = await eventsOf(stage.provider(), { ...request, messages });
      expect(textIn(second)).toBe('Three.');
      expect(JSON.stringify(stage.bodies().at(-1)).includes('Two at once.')).toBe(facts.signs);
      const ofAnother = messages.map((message) =>
        message.role === 'assistant' ? foreign(message) : message,
      );
      script({ text: 'Still three.' });
      expect(textIn(await eventsOf(stage.provider(), { ...request, messages: ofAnother }))).toBe(
        'Still three.',
      );
      expect(JSON.stringify(stage.bodies().at(-1))).not.toContain('Two at once.');
      expect(stage.refusals()).toEqual([]);
    });

    it('sends an image', async () => {
      script({ text: 'A dot.' });
      const content = [
        { type: 'text', text: 'what is it?' },
        { type: 'image', ...aPng },
      ] as const;
      const messages: LlmMessage[] = [{ role: 'user', content }];
      const events = await eventsOf(stage.provider(), aRequest({ messages }));
      expect(events.at(-1)).toMatchObject({ type: 'complete' });
      if (!isScripted) return;
      expect(textIn(events)).toBe('A dot.');
      expect(JSON.stringify(stage.bodies().at(-1))).toContain(aPng.base64);
    });

    it.runIf(isScripted)("never requests more than the request's longest answer", async () => {
      for (const reasoning of ['off', 'low', 'high'] as const) {
        script({ text: 'short' });
        await eventsOf(stage.provider(), aRequest({ maxTokens: 3000, reasoning }));
        const limits = JSON.stringify(stage.bodies().at(-1)).match(/"max\w*_tokens":(\d+)/g) ?? [];
        expect(limits.map((each) => Number(each.split(':')[1]))).toEqual([3000]);
      }
    });

    it.runIf(isScripted).each<[string, Reply, object]>([
      ['401', { status: 401 }, { kind: 'unauthorised' }],
      ['402', { status: 402 }, { kind: 'unauthorised' }],
      [
        '429 with a wait',
        { status: 429, retryAfter: 7 },
        { kind: 'overloaded', retry: { kind: 'later', afterMs: 7000 }, isOwnLimit: true },
      ],
      ['503', { status: 503 }, { kind: 'overloaded', retry: { kind: 'later' } }],
      ['a prompt that is too long', { status: 413 }, { kind: 'overflow' }],
      ['404', { status: 404 }, { kind: 'failed' }],
      ['a connection that is lost', { disconnect: true }, { kind: 'overloaded', retry: { kind: 'later' } }],
      [
        'a stream that is cut',
        { chunks: ['a', 'b'], cutAfter: 1 },
        { kind: 'failed', retry: { kind: 'later' } },
      ],
      ['a stream that just ends', { chunks: ['a', 'b'], endAfter: 1 }, { retry: { kind: 'later' } }],
      [
        'an error inside the stream',
        { chunks: ['a', 'b'], midStreamError: 'overloaded_error', afterChunks: 1 },
        { kind: 'overloaded', retry: { kind: 'later' } },
      ],
    ])('ends %s with one error of the right kind', async (_what, reply, expected) => {
      script(reply);
      const events = await eventsOf(stage.provider());
      expect(events.filter(isEnd)).toHaveLength(1);
      expect(failureIn(events)).toMatchObject(expected);
      expect(failureIn(events)?.detail).not.toContain('test-key');
    });

    it.runIf(isScripted)('switches to the next key if one is refused, and keeps it', async () => {
      const provider = stage.provider(['wrong-key', 'test-key']);
      script({ text: 'one' }, { text: 'two' });
      const before = stage.bodies().length;
      expect(textIn(await eventsOf(provider))).toBe('one');
      expect(textIn(await eventsOf(provider))).toBe('two');
      expect(stage.bodies().length - before).toBe(3);
    });

    it('ends at once when aborted at any event', async () => {
      const turn = { thinking: 'Hm.', chunks: ['a', 'b', 'c'], toolCalls: [path('a'), path('b')] };
      const request = callingRequest;
      script(turn);
      const whole = await eventsOf(stage.provider(), request);
      for (let at = 0; at < whole.length; at += 1) {
        script(turn);
        const events = await abortedAt(stage.provider(), request, at);
        expect(events.filter(isEnd)).toHaveLength(1);
        const last = events.at(-1);
        // An answer that was already complete counts.
        if (last?.type !== 'complete') expect(failureIn(events)?.kind).toBe('aborted');
      }
    });

    it('answers without streaming, too', async () => {
      script({ text: 'A title' }, { status: 401 });
      const { signal } = new AbortController();
      const answer = await stage.provider().send(aRequest(), signal);
      expect(answer).toMatchObject({ text: isScripted ? 'A title' : expect.stringContaining('demo') });
      if (!isScripted) return;
      const refused = stage.provider().send(aRequest(), signal);
      await expect(refused).rejects.toMatchObject({ code: 'model_unauthorised' });
    });
  });
}

/** Checks that each block opens and closes once, and that the only end event is last, complete, with valid figures. */
function checkGrammar(events: readonly ModelEvent[]): void {
  const open = new Set<string>();
  for (const [index, event] of events.entries()) {
    expect(isEnd(event)).toBe(index === events.length - 1);
    const name = 'id' in event ? event.id : 'text';
    if (!/^(content|tool_use)_/.test(event.type)) continue;
    expect(open.has(name)).toBe(!event.type.endsWith('_start'));
    if (event.type.endsWith('_stop')) open.delete(name);
    else open.add(name);
  }
  expect([...open]).toEqual([]);
  const end = events.at(-1);
  if (end?.type !== 'complete') throw new Error(`not complete: ${JSON.stringify(end)}`);
  expect(Object.values(end.usage).every((count) => Number.isSafeInteger(count) && count >= 0)).toBe(true);
  expect([Number.isSafeInteger(end.cost), end.model]).toEqual([true, expect.stringMatching(/./)]);
}

function isEnd({ type }: ModelEvent): boolean {
  return type === 'complete' || type === 'error';
}

async function abortedAt(
  provider: LlmProvider,
  request: ReturnType<typeof aRequest>,
  at: number,
): Promise<readonly ModelEvent[]> {
  const controller = new AbortController();
  const events: ModelEvent[] = [];
  if (at === 0) controller.abort('test');
  for await (const event of provider.stream(request, controller.signal)) {
    events.push(event);
    if (events.length === at) controller.abort('test');
  }
  return events;
}

function resultsFor(calls: readonly Extract<AssistantBlock, { type: 'tool_use' }>[]): LlmMessage {
  return {
    role: 'user',
    content: calls.map(({ id }, index) => ({
      type: 'tool_result',
      toolCallId: id,
      content: `result ${index}`,
      isError: index === 1,
    })),
  };
}

/** Returns the message as another provider's model of the same name would have written it. */
function foreign(message: Extract<LlmMessage, { role: 'assistant' }>): LlmMessage {
  const content = message.content.map((block) =>
    block.type === 'thinking' ? { ...block, signature: `else${block.signature}` } : block,
  );
  return { role: 'assistant', content };
}
