import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { Secret } from '../../src/config/secret.ts';
import type { CallSubject } from '../../src/contracts/call-ledger.ts';
import type { LlmProvider, ModelRequest } from '../../src/contracts/model.ts';
import { createRedactor } from '../../src/logging/redaction.ts';
import { createRotatingFile } from '../../src/logging/rotating-file.ts';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { type CallObserver, observed } from '../../src/models/observers/call-observer.ts';
import { openObservers } from '../../src/models/observers/open-observers.ts';
import { runSpanId, traceIdOf } from '../../src/models/observers/spans.ts';
import { traceRun } from '../../src/runs/execute-run.ts';
import { startAnthropicServer } from '../platforms/anthropic/server.ts';
import { aPng } from '../support/one-pixel.ts';
import { aFolder } from '../support/own-folder.ts';
import { silentLog } from '../support/silent-log.ts';
import { eventsOf } from './builders.ts';

const run = {
  runId: '019ab3c4-0000-7000-8000-0000000000ff',
  epoch: 3,
  sessionId: 'session-1',
  agentId: 'main',
};
const subject: CallSubject = { ...run, purpose: 'turn' };
const key = 'sk-ant-0123456789abcdefgh';
const password = 'p"w\\d with/signs';

const asking = (text: string): ModelRequest => ({
  system: [{ text: `Never say ${password}.`, isStable: true }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text },
        { type: 'image', ...aPng },
      ],
    },
  ],
  tools: [],
  maxTokens: 100,
  reasoning: 'off',
});
async function aModel(): Promise<LlmProvider> {
  const server = await startAnthropicServer({ keys: [key], mayRefuse: 'one call is to fail' });
  onTestFinished(() => server.close());
  return createAnthropicProvider({ model: 'claude-opus-4-6', apiKeys: [key], baseUrl: server.url });
}

const off = { tracing: { headers: {} }, payloadLog: { enabled: false, maxMb: 1 }, dataDir: '/nowhere' };
const redactor = createRedactor([key, password]);
const deps = { clock: systemClock, log: silentLog, version: '1', redact: redactor.redact };

it('leaves a provider unobserved while observers are off', async () => {
  const provider = await aModel();
  const { observers, tracer } = await openObservers(off, deps);
  expect([observers, tracer]).toEqual([[], undefined]);
  expect(observed(provider, observers, subject)).toBe(provider);
});

it('observes each attempt once and ignores observers that fail', async () => {
  const ends: string[] = [];
  const broken: CallObserver = {
    begin: () => ({
      event: () => {
        throw new Error('no');
      },
      end: () => {
        throw new Error('no');
      },
    }),
  };
  const counting: CallObserver = { begin: () => ({ end: ({ kind }) => void ends.push(kind) }) };
  const provider = observed(await aModel(), [broken, counting], subject);
  const events = await eventsOf(provider, asking('hello'));
  expect(events.at(-1)?.type).toBe('complete');
  for await (const _ of provider.stream(asking('left'), new AbortController().signal)) break;
  await provider.send(asking('whole'), new AbortController().signal);
  await eventsOf(provider, { ...asking('too much'), maxTokens: 0, messages: [] });
  expect(ends).toEqual(['answered', 'abandoned', 'answered', 'failed']);
});

it('logs requests and answers to a private file without keys, tokens and codes', async () => {
  const dataDir = aFolder();
  const token = '7000001:AAAA-telegram-token-0123456789abcdef';
  const { observers, close } = await openObservers(
    { ...off, dataDir, payloadLog: { enabled: true, maxMb: 1 } },
    deps,
  );
  const provider = observed(await aModel(), observers, subject);
  const secrets = [key, token, 'WXYZ2345', 'WXYZ-2345'];
  await eventsOf(provider, asking(`Who am I?\n${secrets.join('\n')}`));
  await close();
  const path = join(dataDir, 'payloads.jsonl');
  const text = await readFile(path, 'utf8');
  for (const secret of [...secrets, password, JSON.stringify(password).slice(1, -1), aPng.base64])
    expect(text).not.toContain(secret);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(JSON.parse(text)).toMatchObject({
    ...subject,
    provider: provider.id,
    outcome: { kind: 'answered', usage: { inputTokens: expect.any(Number) } },
    request: {
      system: [{ text: 'Never say [secret].' }],
      messages: [
        { content: [{ text: 'Who am I?\n[secret]\n[secret]\n[code]\n[code]' }, { mimeType: 'image/png' }] },
      ],
      omitted: 0,
    },
    answer: { text: expect.stringMatching(/^You said: Who am I\?/) },
  });
});

it('keeps the payload log within its size and readable by its owner only', async () => {
  const folder = aFolder();
  const path = join(folder, 'payloads.jsonl');
  await writeFile(path, 'old\n', { mode: 0o644 });
  const [file, other] = [createRotatingFile(path, 1_000), createRotatingFile(path, 1_000)];
  for (let index = 0; index < 40; index += 1)
    await (index % 2 === 0 ? file : other).append(`${String(index).padStart(99, ' ')}\n`);
  await Promise.all([file.close(), other.close()]);
  const names = (await readdir(folder)).sort();
  expect(names).toEqual(['payloads.jsonl', 'payloads.jsonl.1']);
  const kept = await Promise.all(names.toReversed().map((name) => readFile(join(folder, name), 'utf8')));
  expect(kept.join('').length).toBeLessThanOrEqual(1_000);
  const lines = kept.join('').trimEnd().split('\n').map(Number);
  expect(lines).toEqual(lines.map((_, index) => 40 - lines.length + index));
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

it('sends a run, its calls and its tools as one trace without any of the content', async () => {
  const bodies: { readonly text: string; readonly head: string }[] = [];
  const collector = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    bodies.push({ text, head: `${request.method} ${request.url} ${request.headers['x-team']}` });
    response.end('{}');
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void collector.close());
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const tracing = { endpoint, headers: { 'x-team': new Secret('blue') } };
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (_fields: object, event: string) => void warnings.push(event) };
  const { observers, tracer, close } = await openObservers({ ...off, tracing }, { ...deps, log });
  const trace = traceRun(tracer, run, systemClock);
  await eventsOf(observed(await aModel(), observers, subject), asking('a private question'));
  const call = { id: 'call-1', name: 'look', input: '{"for":"private"}', finished: true };
  trace({ type: 'tool_execution_prepared', call });
  trace({
    type: 'tool_execution_end',
    callId: 'call-1',
    name: 'look',
    result: { text: 'private' },
    isError: true,
  });
  trace({ type: 'agent_end', messages: [], reason: 'natural' });
  await close();

  expect(bodies.map(({ head }) => head)).toEqual(['POST /v1/traces blue']);
  // What the collector has received isn't reported as lost.
  expect(warnings).toEqual([]);
  const [{ text = '' } = {}] = bodies;
  expect(text).not.toContain('private');
  const { resourceSpans } = JSON.parse(text);
  const spans = resourceSpans[0].scopeSpans[0].spans;
  const parent = runSpanId(run.runId, run.epoch);
  expect(traceIdOf(run.runId)).toBe('019ab3c40000700080000000000000ff');
  expect(spans).toMatchObject([
    { name: 'chat claude-opus-4-6', parentSpanId: parent, kind: 3, status: {} },
    { name: 'execute_tool look', parentSpanId: parent, status: { code: 2, message: 'tool_error' } },
    { name: 'invoke_agent main', spanId: parent },
  ]);
  const ids = new Set(spans.map(({ traceId }: { traceId: string }) => traceId));
  expect([...ids]).toEqual([traceIdOf(run.runId)]);
  expect(spans[0].attributes).toContainEqual({
    key: 'gen_ai.usage.input_tokens',
    value: { intValue: expect.stringMatching(/^\d+$/) },
  });
});

it('loses only spans if the collector does not accept them', async () => {
  const tracing = { endpoint: 'http://127.0.0.1:9', headers: {} };
  const { observers, close } = await openObservers({ ...off, tracing }, deps);
  const events = await eventsOf(observed(await aModel(), observers, undefined), asking('hello'));
  expect(events.at(-1)?.type).toBe('complete');
  await close();
});
