import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Log } from '#contracts/log.ts';
import { readEnvironment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { Secret } from '../../src/config/secret.ts';
import { faultIn } from '../../src/models/model-fault.ts';
import { configuredModel, createModels } from '../../src/models/models.ts';
import { noUsage } from '../../src/models/prices.ts';
import { ServerRefusal } from '../../src/models/server-refusal.ts';
import { alertEndText, alertText } from '../../src/replies/owner-texts.ts';
import {
  createCacheAlerts,
  createKeyAlerts,
  createToolAlerts,
  createWindowAlerts,
  type KeyAlertsDeps,
  staleAlerts,
} from '../../src/roles/model-alerts.ts';
import { readOpenNotices } from '../../src/store/delivery/queue-alert-message.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { until } from '../e2e/until.ts';
import { errorBodies } from '../inputs/errors/bodies.ts';
import { aPatientClock, aRequest, eventsOf, listTool } from '../models/builders.ts';
import { startAnthropicServer } from '../platforms/anthropic/server.ts';
import { startOpenAiServer } from '../platforms/openai/server.ts';
import { aStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';

async function anOwner() {
  const { store, dataDir } = await aStore();
  return { store, dataDir, open: () => store.read(readOpenNotices, { limit: 10 }) };
}

it('tells the owner once that a provider refuses its key or a model, and that it answers again', async () => {
  const [server, { store, dataDir, open }] = await Promise.all([
    startAnthropicServer({ keys: ['sk-ant-0000001'] }),
    anOwner(),
  ]);
  onTestFinished(server.close);
  const config = loadConfig(
    readEnvironment({ ANTHROPIC_API_KEY: 'sk-ant-0000001', ANTHROPIC_BASE_URL: server.url }),
    dataDir,
  );
  /** Starts the model as one process does; a second start knows nothing of the first. */
  const start = () => {
    const { observer, noteKey } = createKeyAlerts({ store, config, log: silentLog });
    return configuredModel(config, {
      clock: aPatientClock(),
      log: silentLog,
      noteKey,
      observers: [observer],
    });
  };
  const ask = ({ models, name }: ReturnType<typeof start>) => eventsOf(models.stackFor(name));

  const wrong = start();
  server.script(() => ({ status: 401, message: 'invalid x-api-key' }));
  await ask(wrong);
  await ask(wrong);
  await until(async () => (await open()).length > 0, { what: 'a stored notice' });
  const [notice] = await open();
  if (notice === undefined) throw new Error('no notice');
  expect(notice).toMatchObject({ kind: 'model-key', subject: 'anthropic', count: 1 });
  const texts = textsFor('en');
  expect(alertText(texts, notice)).toMatch(
    /^anthropic rejects my key: .*401.*invalid x-api-key.* Put a valid one into ANTHROPIC_API_KEY/,
  );
  expect(alertEndText(texts, notice)).toBe('anthropic accepts my key again.');
  server.script(() => ({ text: 'hello' }));
  await ask(start());
  await until(async () => (await open()).length === 0, { what: 'the end of the notice' });

  // A key is accepted before the store has the alert of its refusal.
  let raised = 0;
  const slow: KeyAlertsDeps['store'] = {
    read: (...asked) => store.read(...asked),
    write: async (...step) => {
      await new Promise(setImmediate);
      const written = await store.write(...step);
      raised += 1;
      return written;
    },
  };
  const alerts = createKeyAlerts({ store: slow, config, log: silentLog });
  const call = { provider: 'anthropic', model: 'some', request: aRequest(), subject: undefined };
  const counted = { usage: noUsage, cost: 0, model: 'some' };
  const only = { key: 1, keys: 1 };
  alerts.noteKey('anthropic', { ...only, isRefused: true, isCredit: false, detail: '401' });
  alerts.noteKey('anthropic', { ...only, isRefused: false });
  await until(async () => raised > 0 && (await open()).length === 0, { what: 'an alert that has ended' });

  // A model that the key may not use is a separate alert: its fallback keeps answering.
  const { observer: observers, noteKey } = createKeyAlerts({ store, config, log: silentLog });
  const refused = { kind: 'unauthorised', detail: '403', isAboutModel: true } as const;
  const dear = { ...call, model: 'dear' };
  for (let message = 0; message < 2; message += 1) {
    observers.begin(dear).end({ kind: 'failed', failure: refused });
    observers.begin(call).end({ kind: 'answered', ...counted });
  }
  noteKey('last', { ...only, isRefused: true, isCredit: false, detail: '401' });
  await until(async () => (await open()).some(({ subject }) => subject === 'last'), { what: 'all is noted' });
  const refusal = (await open()).find(({ subject }) => subject === 'anthropic/dear');
  if (refusal === undefined) throw new Error('no notice of the model');
  expect(refusal.count).toBe(1);
  expect(alertText(texts, refusal)).toMatch(/^anthropic\/dear isn’t available to me: 403\./);
  observers.begin(dear).end({ kind: 'answered', ...counted });
  await until(async () => (await open()).length === 1, { what: 'the end of the notice of the model' });
});

it('raises no alert about a key if a provider refuses what a person wrote', async () => {
  const { store, dataDir, open } = await anOwner();
  const config = loadConfig(readEnvironment({}), dataDir);
  const { observer, noteKey } = createKeyAlerts({ store, config, log: silentLog });
  const request = aRequest();
  const refusals = errorBodies.filter(({ is }) => is === 'policy' || is === 'content');
  expect(refusals.length).toBeGreaterThan(8);
  for (const { status, body } of refusals) {
    const error = new ServerRefusal({ status, headers: new Headers(), body, url: 'http://x/' });
    const fault = faultIn(error, false, { request, secrets: [], now: 0 });
    if (fault === undefined) throw new Error('no failure');
    const call = { provider: 'openai', model: 'some', request, subject: undefined };
    observer.begin(call).end({ kind: 'failed', failure: fault.failure });
    expect([body, fault.isAboutKey]).toEqual([body, false]);
  }
  // Notices are stored in order, so this one comes last.
  noteKey('last', { key: 1, keys: 1, isRefused: true, isCredit: false, detail: '401' });
  await until(async () => (await open()).length > 0, { what: 'the last notice' });
  expect((await open()).map(({ subject }) => subject)).toEqual(['last']);
});

it('tells the owner which of several keys is refused, and whether key, account or allowance is the cause', async () => {
  const [longKey, shortKey, spentKey] = ['sk-house-000000000000-9f3c', 'short', 'sk-house-111111111111-77aa'];
  const answers: Record<string, readonly [status: number, body: unknown]> = {
    [longKey]: [402, { error: { message: 'No credits left on this account', code: 402 } }],
    [shortKey]: [401, { error: { message: `Incorrect API key provided: ${shortKey}` } }],
    [spentKey]: [200, { choices: [{ message: { content: 'hi' }, finish_reason: 'stop' }] }],
  };
  const [server, { store, dataDir, open }] = await Promise.all([aKeyServer(answers), anOwner()]);
  const written = { providers: { house: { baseUrl: `${server}/v1` } }, model: 'house/m' };
  await writeFile(join(dataDir, 'parley.config.json'), JSON.stringify(written));
  const variables = { HOUSE_API_KEY: [longKey, shortKey, spentKey].join(',') };
  const config = loadConfig(readEnvironment(variables), dataDir);
  const { observer, noteKey } = createKeyAlerts({ store, config, log: silentLog });
  const { models } = configuredModel(config, {
    ...{ clock: aPatientClock(), log: silentLog, noteKey },
    observers: [observer],
  });
  const ask = () => models.stackFor('house/m').send(aRequest(), new AbortController().signal);
  const texts = async () =>
    (await open())
      .map((notice) => [
        notice.subject,
        alertText(textsFor('en'), notice),
        alertEndText(textsFor('en'), notice),
      ])
      .sort();

  expect((await ask()).text).toBe('hi');
  await until(async () => (await open()).length === 2, { what: 'a notice of each refused key' });
  const isGone = staleAlerts(config, []);
  expect((await open()).map((notice) => isGone(notice))).toEqual([false, false]);
  const other = loadConfig(readEnvironment({ ...variables, HOUSE_API_KEY: spentKey }), dataDir);
  expect((await open()).map((notice) => staleAlerts(other, [])(notice))).toEqual([true, true]);
  expect(await texts()).toEqual([
    [
      'house #2',
      expect.stringMatching(
        /^house rejects key 2 of 3: 401 Incorrect API key provided: \[secret\]\. Put a valid one into HOUSE_API_KEY /,
      ),
      'house accepts key 2 of 3 again.',
    ],
    [
      'house …9f3c',
      expect.stringMatching(
        /^house accepts key 1 of 3 \(…9f3c\), but reports a problem with its account: 402 No credits left on this account\. Check/,
      ),
      'house answers me again.',
    ],
  ]);
  answers[longKey] = answers[spentKey] ?? [500, ''];
  answers[spentKey] = [
    429,
    { error: { message: 'Daily limit reached. Resets at 2027-01-01', code: '1308' } },
  ];
  expect((await ask()).text).toBe('hi');
  await until(async () => (await open()).length === 1, { what: 'the end of one notice' });
  answers[longKey] = answers[spentKey];
  await expect(ask()).rejects.toThrow('Daily limit');
  await until(async () => (await open()).length === 2, { what: 'a notice of the allowance' });
  expect(await texts()).toContainEqual([
    'house',
    expect.stringMatching(/^house says that my allowance there is used up: 429 .*Daily limit reached/),
    'house answers me again.',
  ]);
});

/** Starts a server that answers each key in its own way. */
async function aKeyServer(answers: Readonly<Record<string, readonly [status: number, body: unknown]>>) {
  const server = createServer((request, response) => {
    request.resume();
    const [status, body] = answers[String(request.headers.authorization).slice(7)] ?? [500, ''];
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('tells the owner once that a model is asked without tools, unless configured so', async () => {
  const [server, { store, dataDir, open }] = await Promise.all([startOpenAiServer({ keys: [] }), anOwner()]);
  onTestFinished(server.close);
  server.script((body) =>
    'tools' in body ? { status: 400, message: 'gemma3:4b does not support tools' } : { text: 'By heart.' },
  );
  const written = {
    providers: { house: { baseUrl: server.url } },
    models: { plain: { provider: 'house', id: 'gemma3:4b', tools: false } },
    model: 'house/gemma3:4b',
  };
  await writeFile(join(dataDir, 'parley.config.json'), JSON.stringify(written));
  const config = loadConfig(readEnvironment({}), dataDir);
  const observers = [createToolAlerts({ store, log: silentLog })];
  const { models } = configuredModel(config, { clock: aPatientClock(), log: silentLog, observers });
  const ask = (name: string) => eventsOf(models.stackFor(name), aRequest({ tools: [listTool] }));

  expect((await ask('plain')).at(-1)).not.toHaveProperty('withoutTools');
  expect(server.requests).toHaveLength(1);
  expect(await open()).toEqual([]);
  await ask('house/gemma3:4b');
  await ask('house/gemma3:4b');
  await until(async () => (await open()).length > 0, { what: 'a stored notice' });
  const [notice] = await open();
  if (notice === undefined) throw new Error('no notice');
  expect(notice).toMatchObject({ subject: 'house/gemma3:4b', count: 1 });
  expect(alertText(textsFor('en'), notice)).toMatch(/^house\/gemma3:4b doesn’t support tools, so I answer/);
});

it('tells the owner once which window a server has named, and uses it from then on', async () => {
  const [server, { store, dataDir, open }] = await Promise.all([
    startOpenAiServer({ keys: ['none'] }),
    anOwner(),
  ]);
  onTestFinished(server.close);
  server.script(({ max_tokens: asked }) =>
    Number(asked) > 2_048
      ? {
          status: 400,
          message: `This model's maximum context length is 8192 tokens. However, you requested ${asked} output tokens and your prompt contains at least 1044 input tokens.`,
        }
      : { text: 'It fits.' },
  );
  const written = { providers: { house: { baseUrl: server.url } }, model: 'house/small' };
  await writeFile(join(dataDir, 'parley.config.json'), JSON.stringify(written));
  const noteWindow = createWindowAlerts({ store, log: silentLog });
  const config = loadConfig(readEnvironment({}), dataDir);
  const { models } = configuredModel(config, { clock: aPatientClock(), log: silentLog, noteWindow });
  const provider = models.stackFor('house/small');
  const request = aRequest({ maxTokens: 16_000 });

  expect((await eventsOf(provider, request)).at(-1)).toMatchObject({ type: 'complete' });
  expect((await eventsOf(provider, request)).at(-1)).toMatchObject({ type: 'complete' });
  expect(server.requests).toHaveLength(3);
  expect(provider.model()).toMatchObject({ contextWindow: 8_192, answerTokens: 2_048 });
  await until(async () => (await open()).length > 0, { what: 'a stored notice' });
  const [notice] = await open();
  if (notice === undefined) throw new Error('no notice');
  expect(notice).toMatchObject({ kind: 'model-window', subject: 'house/small', count: 1 });
  expect(alertText(textsFor('en'), notice)).toMatch(/^house\/small says .* 8192 tokens.*"window": 8192/);
});

it('tells the owner once a day about an unexplained cache miss, and logs every miss', async () => {
  const [server, { store, open }] = await Promise.all([startAnthropicServer(), anOwner()]);
  onTestFinished(server.close);
  const lines: unknown[] = [];
  const log: Log = { ...silentLog, info: (...line) => void lines.push(line) };
  const clock = aPatientClock();
  const models = createModels(
    {
      providers: { anthropic: { kind: 'anthropic', apiKeys: [new Secret('test-key')], keysEnv: 'KEY' } },
      ...{ models: {}, model: 'anthropic/claude-sonnet-5-5', agents: [] },
    },
    {
      ...{ clock, log: silentLog, observers: [createCacheAlerts({ store, log, clock })] },
      fetch: (url, init) => fetch(String(url).replace('https://api.anthropic.com', server.url), init),
    },
  );
  const stack = models.stackFor('anthropic/claude-sonnet-5-5');
  const ask = (text = 'You are Parley.') =>
    eventsOf(stack, aRequest({ conversation: 'one', system: [{ text, isStable: true }] }));
  server.script((_, count) => ({ text: 'Hello.', ...(count > 1 && { cacheMiss: 'system_changed' }) }));

  await ask();
  await ask('You are brief.');
  expect(lines).toMatchObject([
    [{ sessionId: 'one', reason: 'system_changed', changed: ['system'] }, 'model.cache-missed'],
  ]);
  expect(await open()).toEqual([]);

  await ask('You are brief.');
  await ask('You are brief.');
  expect(lines).toHaveLength(3);
  await until(async () => (await open()).length > 0, { what: 'a stored notice' });
  const [notice] = await open();
  if (notice === undefined) throw new Error('no notice');
  expect(notice).toMatchObject({ kind: 'model-cache', subject: 'anthropic/claude-sonnet-5-5', count: 1 });
  expect(alertText(textsFor('en'), notice)).toMatch(
    /^anthropic\/claude-sonnet-5-5 couldn’t reuse .*“system_changed”.*model\.cache-missed/,
  );
  await clock.wait(86_400_000, new AbortController().signal);
  await ask('You are brief.');
  await until(async () => (await open())[0]?.count === 2, { what: 'the next day’s event' });
});
