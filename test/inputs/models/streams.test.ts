import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { aRequest } from '../../models/builders.ts';
import { holds } from '../../support/holds.ts';
import { chatDialects, type Dialect, type Turn, turns } from './dialects.ts';
import { messageDialects } from './message-dialects.ts';
import { type RawServer, startRawServer } from './raw-server.ts';
import { eventsOf, type Outcome, outcomeOf, providerAt } from './read-with.ts';
import { singleStreams } from './single-streams.ts';

let server: RawServer;
beforeAll(async () => {
  server = await startRawServer();
});
afterAll(() => server.close());

const dialects = [...chatDialects, ...messageDialects];

/** Returns what a dialect's answer has to be understood as. */
function expected({ usage, hidesThinking }: Dialect, { thinking, texts, calls, isCut }: Turn): Outcome {
  return {
    ...(texts && { text: texts.join('') }),
    ...(thinking !== undefined && !hidesThinking && { thinking }),
    ...(calls && { calls: calls.map(({ input }) => ['list', input] as const) }),
    ...(usage && { usage }),
    finish: isCut ? 'max_tokens' : calls ? 'tool_use' : 'end_turn',
  };
}

const whole = (content: string) => ({
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
});

describe.each(dialects)('the stream of $server', (dialect) => {
  it.each(turns)('reads a stream as what it is: $what', async (turn) => {
    server.answer({ body: dialect.stream(turn) });
    expect(await outcomeOf(providerAt(server.url, dialect.api))).toEqual(expected(dialect, turn));
  });
});

it.each(singleStreams)('reads a stream of a special shape as what it is: $what', async (stream) => {
  const { api = 'openai', type, body, expected: outcome } = stream;
  server.answer({ ...(type && { type }), body });
  expect(await outcomeOf(providerAt(server.url, api))).toEqual(outcome);
});

it('takes a stated charge as the cost despite a known price, streamed or not', async () => {
  // The shape of OpenRouter's answers with a search plugin (input 35).
  const usage = { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150, cost: 0.0145 };
  const [body, signal] = [{ model: 'x', ...whole('Yes.'), usage }, new AbortController().signal];
  const provider = providerAt(server.url, 'openai');
  server.answer({ type: 'application/json', body: JSON.stringify(body) });
  expect(await provider.send(aRequest(), signal)).toMatchObject({ text: 'Yes.', cost: 14_500 });
  expect((await eventsOf(provider)).at(-1)).toMatchObject({ type: 'complete', cost: 14_500 });
});

it("treats a call refused inside the stream as the model's slip and asks again at once", async () => {
  const reported = new URL('./reported/37-tool-use-failed-in-stream.sse', import.meta.url);
  server.answer({ body: readFileSync(reported, 'utf8') });
  const events = await eventsOf(providerAt(server.url, 'openai'));
  const failure = { kind: 'failed', refusal: 'slip', retry: { kind: 'later', afterMs: 0 } };
  expect(events.at(-1)).toMatchObject({ type: 'error', failure });
});

it('reads an unstreamed answer past its nulls', async () => {
  const choice = { index: null, message: { content: [null, { type: 'text', text: 'Yes.' }], refusal: null } };
  for (const choices of [[null, choice], [choice, null], [null], null]) {
    server.answer({ type: 'application/json', body: JSON.stringify({ model: null, choices, usage: null }) });
    const sent = providerAt(server.url, 'openai').send(aRequest(), new AbortController().signal);
    if (choices?.includes(choice)) expect(await sent).toMatchObject({ text: 'Yes.', isUncounted: true });
    else await expect(sent).rejects.toMatchObject({ code: 'model_failed' });
  }
});

it('covers at least 120 streams of at least 15 kinds of servers', () => {
  expect(dialects.length * turns.length + singleStreams.length).toBeGreaterThanOrEqual(120);
  expect(new Set(dialects.map(({ server: name }) => name)).size).toBeGreaterThanOrEqual(15);
});

/** No answer or preview may contain any of these. */
const protocol = /<\/?think|tool_call|<\||｜|DSML|\[TOOL_CALLS|A greeting\. I greet|Both\./;

describe('a changed stream', () => {
  const bodies = dialects.flatMap(({ api, stream }) => turns.map((turn) => ({ api, body: stream(turn) })));

  it('ends any changed stream with one event and shows neither reasoning nor protocol', async () => {
    const change = fc.record({
      of: fc.nat(),
      at: fc.nat(),
      how: fc.constantFrom('null', 'absent', 'renamed', 'unknown', 'list', 'nulls', 'number'),
    });
    const property = fc.asyncProperty(
      change,
      fc.integer({ min: 1, max: 40 }),
      async ({ of, at, how }, size) => {
        const { api, body } = bodies[of % bodies.length] ?? { api: 'openai', body: '' };
        const changed = changedLine(body, at, how);
        server.answer({ body: changed.match(new RegExp(`[\\s\\S]{1,${size * 20}}`, 'g')) ?? [changed] });
        const outcome = await outcomeOf(providerAt(server.url, api));
        expect(outcome.finish ?? outcome.failure).toBeTypeOf('string');
        expect(outcome.text ?? '').not.toMatch(protocol);
      },
    );
    await holds(property, { numRuns: 400, interruptAfterTimeLimit: 8_000 });
  });
});

/** A mark that ends reasoning. Without it, nothing tells the reasoning of a pre-filled answer from its text. */
const lastMark = /think>|think▷|<channel\||<\|end\||<\|message\||final/;

/** Changes one field, at any depth, of one event; an event with such a mark only gains one. */
function changedLine(body: string, at: number, change: string): string {
  const lines = body.split('\n');
  const data = lines.flatMap((line, index) => (line.startsWith('data: {') ? [index] : []));
  const index = data[at % data.length];
  if (index === undefined) return body;
  const how = lastMark.test(lines[index] ?? '') ? 'unknown' : change;
  const json = JSON.parse(lines[index]?.slice(6) ?? '{}');
  const places: [Record<string, unknown>, string][] = [];
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const key of Object.keys(value)) {
      // Reasoning under a name that nobody knows can't be told from a text's name.
      places.push([value as Record<string, unknown>, key]);
      walk((value as Record<string, unknown>)[key]);
    }
  };
  walk(json);
  const [owner, key] = places[(at >> 3) % places.length] ?? [json, 'x'];
  const old = owner[key];
  if (how === 'unknown') owner.something_new = { deep: [1, 'two'] };
  else delete owner[key];
  if (how === 'null') owner[key] = null;
  if (how === 'renamed') owner[`${key}_v2`] = old;
  if (how === 'list') owner[key] = [old];
  if (how === 'nulls') owner[key] = [null, ...(Array.isArray(old) ? old : [])];
  if (how === 'number') owner[key] = 7;
  lines[index] = `data: ${JSON.stringify(json)}`;
  return lines.join('\n');
}
