import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BudgetSpentError, type CallEnd, type CallLedger } from '#contracts/call-ledger.ts';
import type { ModelEvent } from '#contracts/model.ts';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { metered } from '../../src/models/metering.ts';
import { createOpenAiProvider } from '../../src/models/openai/openai.ts';
import { costOf, lookUpPrices, noUsage } from '../../src/models/prices.ts';
import { withRetry } from '../../src/models/retry.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import type { Reply } from '../platforms/anthropic/turn.ts';
import { holds } from '../support/holds.ts';
import { aPatientClock, aRequest, eventsOf, failureIn } from './builders.ts';

let server: AnthropicServer;
beforeAll(async () => {
  server = await startAnthropicServer();
});
afterAll(() => server.close());

type Row = { readonly model: string; end?: CallEnd };

/** Returns an in-memory ledger that keeps the first end of each row, as the store does. */
function aLedger(): CallLedger & { readonly rows: Row[] } {
  const rows: Row[] = [];
  return {
    rows,
    open: async ({ model }) => {
      rows.push({ model: model.id });
      return { id: String(rows.length - 1) };
    },
    close: async ({ id }, end) => {
      const row = rows[Number(id)];
      if (row) row.end ??= end;
    },
  };
}

const models = ['claude-sonnet-5-5', 'claude-haiku-4-5'];

function aStack(ledger: CallLedger) {
  const [first, ...fallbacks] = models.map((model) =>
    metered(createAnthropicProvider({ model, apiKeys: ['test-key'], baseUrl: server.url }), ledger),
  );
  if (first === undefined) throw new Error('no model');
  return withRetry(first, { clock: aPatientClock(), random: () => 0, fallbacks });
}

const usage = { input_tokens: 1000, output_tokens: 100 };
const countOf = ({ input_tokens, output_tokens }: typeof usage) => ({
  ...noUsage,
  inputTokens: input_tokens,
  outputTokens: output_tokens,
});
const turned: Reply = { status: 529 };
const broken: Reply = { disconnect: true };

it('charges an uncounted answer as unknown, with an estimate', async () => {
  server.script([{ chunks: ['one', 'two'], endAfter: 2 }]);
  const ledger = aLedger();
  expect((await eventsOf(aStack(ledger))).at(-1)).toMatchObject({ type: 'complete', isUncounted: true });
  const usage = { inputTokens: expect.any(Number), outputTokens: expect.any(Number) };
  expect(ledger.rows[0]?.end).toMatchObject({ state: 'unknown', model: models[0], usage });
});

it('closes a call stopped at any point with what has arrived so far', async () => {
  const prompt = countOf({ ...usage, output_tokens: 0 });
  for (const [stopAt, writtenBytes] of [0, 4, 4, 8].entries()) {
    server.script([{ chunks: ['one ', 'two ', 'three'], usage }]);
    const ledger = aLedger();
    const seen: ModelEvent[] = [];
    for await (const event of aStack(ledger).stream(aRequest(), new AbortController().signal)) {
      seen.push(event);
      if (seen.length > stopAt) break;
    }
    expect(ledger.rows).toEqual([{ model: models[0], end: { state: 'stopped', prompt, writtenBytes } }]);
  }
});

it('charges a refused answer as counted', async () => {
  server.script([{ text: 'I', stopReason: 'refusal', usage }]);
  const ledger = aLedger();
  expect(failureIn(await eventsOf(aStack(ledger)))).toMatchObject({ kind: 'refused' });
  const counted = { state: 'settled', cost: costOf(countOf(usage), lookUpPrices('claude-sonnet-5-5')) };
  server.script([{ text: 'I', stopReason: 'refusal', usage }]);
  const sending = aStack(ledger).send(aRequest(), new AbortController().signal);
  await expect(sending).rejects.toMatchObject({ code: 'model_refused' });
  expect(ledger.rows.map(({ end }) => end)).toMatchObject([counted, counted]);
});

it('records no call that is stopped while its provider loads, and sends later calls at once', async () => {
  let asked = 0;
  const fetch = async () => {
    asked += 1;
    return new Response('{}', { status: 500 });
  };
  const access = { model: 'some-model', apiKeys: ['test-key'], fetch };
  for (const provider of [createAnthropicProvider(access), createOpenAiProvider(access)]) {
    const ledger = aLedger();
    const stop = new AbortController();
    const before = asked;
    const loaded = Promise.withResolvers<void>();
    const loading = metered({ ...provider, ready: () => loaded.promise }, ledger);
    const stopped = eventsOf(loading, aRequest(), stop.signal);
    const sent = expect(loading.send(aRequest(), stop.signal)).rejects.toThrow('aborted');
    await new Promise(setImmediate);
    stop.abort('stop');
    loaded.resolve();
    expect(failureIn(await stopped)).toMatchObject({ kind: 'aborted', isFree: true });
    await sent;
    expect([ledger.rows, asked]).toEqual([[], before]);
    await provider.ready?.();
    const leaving = eventsOf(provider);
    await new Promise(setImmediate);
    expect(asked).toBe(before + 1);
    await leaving;
  }
});

it('closes a call that is stopped before it leaves as void and asks no model', async () => {
  const ledger = aLedger();
  const stop = new AbortController();
  const open: CallLedger['open'] = async (call) => {
    const ticket = await ledger.open(call);
    stop.abort('stop');
    return ticket;
  };
  const from = server.requests.length;
  const events = await eventsOf(aStack({ ...ledger, open }), aRequest(), stop.signal);
  expect(failureIn(events)).toMatchObject({ kind: 'aborted', isFree: true });
  expect(ledger.rows).toEqual([{ model: models[0], end: { state: 'void' } }]);
  expect(server.requests.length).toBe(from);
});

it('asks neither the model nor a fallback if a budget is spent', async () => {
  const ledger = { ...aLedger(), open: () => Promise.reject(new BudgetSpentError('person')) };
  const from = server.requests.length;
  const events = await eventsOf(aStack(ledger));
  expect(failureIn(events)).toMatchObject({ kind: 'budget', budget: 'person', isFree: true });
  expect(server.requests.length).toBe(from);
});

// Must be the last test: if time runs out, fast-check lets its last case end on its own, on the same server.
it("records every attempt, including fallbacks, once and at its model's prices", async () => {
  const reply = fc.constantFrom<Reply>({ text: 'yes', usage }, turned, broken);
  await holds(
    fc.asyncProperty(fc.array(reply, { minLength: 11, maxLength: 11 }), async (script) => {
      server.script(script);
      const from = server.requests.length;
      const ledger = aLedger();
      await eventsOf(aStack(ledger));
      const played = script.slice(0, server.requests.length - from);
      expect(ledger.rows.map(({ end }) => end?.state)).toEqual(played.map(stateOf));
      expect(ledger.rows.map(({ model }) => model)).toEqual(
        played.map((_, index) => (index < 3 ? models[0] : models[1])),
      );
      for (const { model, end } of ledger.rows) {
        if (end?.state === 'settled') expect(end.cost).toBe(costOf(end.usage, lookUpPrices(model)));
      }
    }),
    { numRuns: 20, interruptAfterTimeLimit: 2_000 },
  );
});

function stateOf(reply: Reply): CallEnd['state'] {
  if ('status' in reply) return 'void';
  return 'text' in reply ? 'settled' : 'unknown';
}
