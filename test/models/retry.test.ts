import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModelFailure } from '#contracts/model.ts';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { nextTry, withRetry } from '../../src/models/retry.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import type { Reply } from '../platforms/anthropic/turn.ts';
import { holds } from '../support/holds.ts';
import { aPatientClock, aRequest, aUserMessage, eventsOf, failureIn, textIn } from './builders.ts';

let server: AnthropicServer;
beforeAll(async () => {
  server = await startAnthropicServer();
});
afterAll(() => server.close());

/** Runs one request against a script; `models` after the first are fallbacks. */
async function run(script: readonly Reply[], models: readonly string[] = ['claude-sonnet-5-5']) {
  server.script(script);
  const from = server.requests.length;
  const clock = aPatientClock();
  const [first, ...rest] = models.map((model) =>
    createAnthropicProvider({ model, apiKeys: ['test-key'], baseUrl: server.url }),
  );
  if (first === undefined) throw new Error('no model');
  const provider = withRetry(first, { clock, random: () => 0, fallbacks: rest });
  const events = await eventsOf(provider, aRequest({ messages: [aUserMessage('only once')] }));
  return { events, waits: clock.waits, requests: server.requests.slice(from) };
}

describe('calls that fail before their first token', () => {
  it('tries a call 8 times and waits 2 s × 2^(n-1), a minute at most', async () => {
    const { events, waits, requests } = await run(Array(8).fill({ status: 529 }));
    expect(requests).toHaveLength(8);
    expect(waits).toEqual([2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    expect(failureIn(events)?.kind).toBe('overloaded');
  });

  it('waits as long as retry-after says, a minute at most', async () => {
    const { waits, events } = await run([
      { status: 429, retryAfter: 5 },
      { status: 529, retryAfter: 900 },
      { status: 500 },
      { text: 'at last' },
    ]);
    expect(waits).toEqual([5000, 60_000, 8000]);
    expect(textIn(events)).toBe('at last');
  });

  it('waits its own time if retry-after makes no sense', async () => {
    const senseless = ['0', '-5', 'soon', 'NaN', '0.000001'];
    const { waits, events } = await run([
      ...senseless.map((retryAfter) => ({ status: 503, retryAfter })),
      { status: 503, retryAfter: '1e300' },
      { status: 503, retryAfter: 'Fri, 31 Dec 9999 23:59:59 GMT' },
      { text: 'at last' },
    ]);
    expect(waits).toEqual([2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    expect(textIn(events)).toBe('at last');
  });

  it.each<[string, Reply]>([
    ['an overloaded answer', { status: 529 }],
    ['a server error', { status: 503 }],
    ['a closed connection', { disconnect: true }],
    ['a stream cut before its first token', { text: 'x', cutAfter: 0 }],
    ['a stream cut after an empty piece', { chunks: ['', 'x'], cutAfter: 1 }],
    ['an error event before the first token', { text: 'x', midStreamError: 'overloaded_error' }],
    ['garbage', { garbage: 'event: message_start\ndata: {{{\n\n' }],
  ])('retries after %s and shows one answer', async (_, fault) => {
    const { events, requests } = await run([fault, { text: 'fine now' }]);
    expect(requests).toHaveLength(2);
    expect(events.map((event) => event.type)).toEqual([
      'warning',
      'content_start',
      'content_delta',
      'content_stop',
      'complete',
    ]);
  });

  it('sends the very same request with every attempt (pitfall 15)', async () => {
    const { requests } = await run([{ status: 429 }, { disconnect: true }, { status: 500 }, { text: 'ok' }]);
    const bodies = requests.map((entry) => JSON.stringify(entry.body));
    expect(new Set(bodies).size).toBe(1);
    expect(bodies[0]?.split('only once')).toHaveLength(2);
  });

  it('announces each wait with its length', async () => {
    const { events } = await run([{ status: 529 }, { status: 529 }, { text: 'ok' }]);
    const warnings = events.filter((event) => event.type === 'warning');
    expect(warnings).toMatchObject([
      { kind: 'retrying', waitMs: 2000 },
      { kind: 'retrying', waitMs: 4000 },
    ]);
  });
});

describe('calls that are not retried', () => {
  it.each<[string, Reply]>([
    ['a bad request', { status: 400 }],
    ['a missing model', { status: 404 }],
    ['a refused key', { status: 401 }],
    ['an overflow', { status: 413 }],
    ['a refusal', { text: 'no', stopReason: 'refusal' }],
  ])('does not retry a call that ended with %s', async (_, reply) => {
    const { events, requests } = await run([reply]);
    expect(requests).toHaveLength(1);
    expect(events.at(-1)?.type).toBe('error');
  });

  it('does not retry a call whose first token was shown', async () => {
    const { events, requests } = await run(
      [{ chunks: ['half ', 'whole'], cutAfter: 1 }],
      ['claude-sonnet-5-5', 'claude-opus-5'],
    );
    expect(requests).toHaveLength(1);
    expect(textIn(events)).toBe('half ');
    expect(failureIn(events)?.kind).toBe('failed');
  });

  it('does not retry a call that was aborted during its wait', async () => {
    server.script([{ status: 529 }]);
    const from = server.requests.length;
    const abort = new AbortController();
    const clock = { now: () => 0, wait: async () => abort.abort() };
    const provider = createAnthropicProvider({
      model: 'claude-sonnet-5-5',
      apiKeys: ['test-key'],
      baseUrl: server.url,
    });
    const events = await eventsOf(withRetry(provider, { clock, random: () => 0 }), aRequest(), abort.signal);
    expect(failureIn(events)?.kind).toBe('aborted');
    expect(server.requests).toHaveLength(from + 1);
  });
});

describe('fallback models', () => {
  const models = ['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-haiku-4-5'];
  const asked = (requests: readonly { body: { model: string } }[]) =>
    requests.map((entry) => entry.body.model);

  it('asks fallback models in order, each but the last after 3 tries', async () => {
    const { events, requests } = await run([...Array(6).fill({ status: 529 }), { text: 'hi' }], models);
    expect(asked(requests)).toEqual([...Array(3).fill(models[0]), ...Array(3).fill(models[1]), models[2]]);
    expect(events.at(-1)).toMatchObject({ type: 'complete', model: 'claude-haiku-4-5' });
    expect(events.filter((event) => event.type === 'warning' && event.kind === 'fallback')).toHaveLength(2);
  });

  it('asks a fallback at once if the first model cannot be used at all', async () => {
    const { requests, waits } = await run([{ status: 404 }, { text: 'hi' }], models);
    expect(asked(requests)).toEqual(models.slice(0, 2));
    expect(waits).toEqual([]);
  });

  it.each<[string, Reply]>([
    ['an overflow', { status: 413 }],
    ['a refusal', { text: 'no', stopReason: 'refusal' }],
  ])('asks no fallback after %s', async (_, reply) => {
    expect((await run([reply], models)).requests).toHaveLength(1);
  });

  it('falls back in send, too', async () => {
    server.script([{ status: 404 }, { status: 529 }, { text: 'A title' }]);
    const [first, second] = models.map((model) =>
      createAnthropicProvider({ model, apiKeys: ['test-key'], baseUrl: server.url }),
    );
    if (first === undefined || second === undefined) throw new Error('two models');
    const clock = aPatientClock();
    const provider = withRetry(first, { clock, random: () => 0, fallbacks: [second] });
    const answer = await provider.send(aRequest(), new AbortController().signal);
    expect(answer).toMatchObject({ text: 'A title', model: 'claude-sonnet-5-5' });
    expect(clock.waits).toEqual([2000]);
  });
});

describe('the retry policy', () => {
  const kinds = [
    'aborted',
    'unauthorised',
    'overloaded',
    'overflow',
    'refused',
    'oversized',
    'failed',
  ] as const;
  const failure: fc.Arbitrary<ModelFailure> = fc.record({
    kind: fc.constantFrom(...kinds),
    detail: fc.constant(''),
    retry: fc.oneof(
      fc.constant({ kind: 'never' } as const),
      fc.record({ kind: fc.constant('later' as const), afterMs: fc.nat(10_000_000) }),
      fc.constant({ kind: 'later' } as const),
    ),
  });
  const state = fc.record({
    tried: fc.integer({ min: 1, max: 20 }),
    hasFallback: fc.boolean(),
    random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  });

  it('keeps to its tries and waits and never continues after abort, overflow or refusal', () => {
    const property = fc.property(failure, state, (failed, at) => {
      const step = nextTry(failed, at);
      if (['aborted', 'overflow', 'refused'].includes(failed.kind)) expect(step.kind).toBe('end');
      if (step.kind === 'fallback') expect(at.hasFallback).toBe(true);
      if (step.kind !== 'again') return;
      expect(failed.retry?.kind).toBe('later');
      expect(at.tried).toBeLessThan(at.hasFallback ? 3 : 8);
      const own = 2000 * 2 ** (at.tried - 1);
      const wanted = failed.retry?.kind === 'later' ? failed.retry.afterMs : undefined;
      expect(step.waitMs).toBeLessThanOrEqual(60_000);
      if (wanted === undefined || wanted < 1000) {
        expect(step.waitMs).toBeGreaterThanOrEqual(Math.min(own, 60_000));
        expect(step.waitMs).toBeLessThanOrEqual(own * 1.2 + 1);
      } else expect(step.waitMs).toBe(Math.min(wanted, 60_000));
    });
    holds(property, { numRuns: 20_000, interruptAfterTimeLimit: 1000 });
  });
});
