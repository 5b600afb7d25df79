import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Secret } from '../../src/config/secret.ts';
import { withBoundedAnswers } from '../../src/models/bounded-answer.ts';
import { createProvider } from '../../src/models/models.ts';
import { withRetry } from '../../src/models/retry.ts';
import { startAnthropicServer } from '../platforms/anthropic/server.ts';
import { startOpenAiServer } from '../platforms/openai/server.ts';
import { aPatientClock, eventsOf, failureIn } from './builders.ts';

const limits = { eventBytes: 40, eventLines: 6, answerBytes: 2_000, eventsPerTurn: 10, bytesPerTurn: 120 };

/** Returns what is read of an answer that arrives in these pieces. */
async function readOf(pieces: readonly string[], type = 'text/event-stream'): Promise<readonly string[]> {
  const headers = { 'content-type': type };
  const body = ReadableStream.from(pieces.map((piece) => Buffer.from(piece)));
  const answer = await withBoundedAnswers(async () => new Response(body, { headers }), limits)('http://x');
  const read: string[] = [];
  for await (const piece of answer.body ?? []) read.push(Buffer.from(piece).toString());
  return read;
}

const wide = 'x'.repeat(36);

test.each([
  ['events with every kind of line end', ['data: 1\n', '\ndata: 2\r', '\n\r\ndata: 3\r\r', 'data: 4']],
  ['more bytes and lines in all than one event may have', Array(20).fill(`${wide}\r\n\r\n[,{\n\n`)],
])('reads an answer unchanged: %s', async (_what, pieces) => {
  expect((await readOf(pieces)).join('')).toBe(pieces.join(''));
});

test.each([
  ['an event that never ends', [wide, wide]],
  ['lines that never end their event', Array(20).fill('d\n')],
  ['events without end', Array(300).fill('data: {}\n\n')],
  ['an answer without events that is as long', [`${wide}\n\n${wide}`], 'application/json'],
])('stops reading an answer that is too large: %s', async (_what, pieces, type = undefined) => {
  await expect(readOf(pieces, type)).rejects.toThrow('the answer is too large: more than ');
});

test('lets others take turns while it reads events that arrive at once', async () => {
  let turns = 0;
  let isRead = false;
  const others = (async () => {
    while (!isRead) {
      await nextTurn();
      turns += 1;
    }
  })();
  const pieces = await readOf(['data: {}\n\n'.repeat(100)]);
  isRead = true;
  await others;
  expect(pieces.map((piece) => piece.length)).toEqual(Array(10).fill(100));
  expect(turns).toBeGreaterThanOrEqual(10);
});

test('lets others take turns sooner while it reads long events', async () => {
  const event = `data: ${'x'.repeat(32)}\n\n`;
  expect((await readOf([event.repeat(9)])).map(({ length }) => length / event.length)).toEqual([3, 3, 3]);
});

test.each([
  ['anthropic', startAnthropicServer],
  ['openai', startOpenAiServer],
] as const)(
  "fails a call over an %s server's endless event without another request",
  async (kind, startServer) => {
    const server = await startServer();
    onTestFinished(() => server.close());
    server.script([{ garbage: `data: ${'x'.repeat(5 * 1024 * 1024)}` }]);
    const clock = aPatientClock();
    const provider = createProvider(
      { provider: kind, id: 'claude-sonnet-5-5', fallbacks: [] },
      { kind, apiKeys: [new Secret('test-key')], keysEnv: 'KEY', baseUrl: server.url },
      { clock },
    );
    const failure = failureIn(await eventsOf(withRetry(provider, { clock, random: () => 0 })));
    expect(failure).toEqual({
      kind: 'oversized',
      detail: 'the answer is too large: more than 4194304 bytes in one event',
    });
    expect(server.requests).toHaveLength(1);
  },
);
