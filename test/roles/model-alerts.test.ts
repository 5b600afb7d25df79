import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readEnvironment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { configuredModel } from '../../src/models/configured-model.ts';
import { noUsage } from '../../src/models/cost.ts';
import { alertEndText, alertText } from '../../src/replies/owner-texts.ts';
import {
  createKeyAlerts,
  createToolAlerts,
  createWindowAlerts,
  type KeyAlertsDeps,
} from '../../src/roles/model-alerts.ts';
import { readOpenNotices } from '../../src/store/delivery/queue-alert-message.ts';
import { noticesFor } from '../../src/texts/notices.ts';
import { until } from '../e2e/until.ts';
import { aPatientClock, aRequest, eventsOf, listTool } from '../models/builders.ts';
import { startAnthropicServer } from '../platforms/anthropic/server.ts';
import { startOpenAiServer } from '../platforms/openai/server.ts';
import { aStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';

async function anOwner() {
  const { store, dataDir } = await aStore();
  return { store, dataDir, open: () => store.read(readOpenNotices, { limit: 10 }) };
}

it('tells the owner once that a provider rejects its key, or one model to it, and that it answers again', async () => {
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
    const observers = [createKeyAlerts({ store, config, log: silentLog })];
    return configuredModel(config, { clock: aPatientClock(), log: silentLog, observers });
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
  const texts = noticesFor('en');
  expect(alertText(texts, notice)).toMatch(
    /^anthropic rejects my key: .*401.*invalid x-api-key.* Put a valid one into ANTHROPIC_API_KEY/,
  );
  expect(alertEndText(texts, notice)).toBe('anthropic accepts my key again.');
  server.script(() => ({ text: 'hello' }));
  await ask(start());
  await until(async () => (await open()).length === 0, { what: 'the end of the notice' });

  // A call is answered before the store has the alert of an earlier one.
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
  alerts.begin(call).end({ kind: 'failed', failure: { kind: 'unauthorised', detail: '401' } });
  alerts.begin(call).end({ kind: 'answered', ...counted });
  await until(async () => raised > 0 && (await open()).length === 0, { what: 'an alert that has ended' });

  // A model that the key may not use is a separate alert: its fallback keeps answering.
  const observers = createKeyAlerts({ store, config, log: silentLog });
  const refused = { kind: 'unauthorised', detail: '403', isAboutModel: true } as const;
  const dear = { ...call, model: 'dear' };
  for (let message = 0; message < 2; message += 1) {
    observers.begin(dear).end({ kind: 'failed', failure: refused });
    observers.begin(call).end({ kind: 'answered', ...counted });
  }
  observers
    .begin({ ...call, provider: 'last' })
    .end({ kind: 'failed', failure: { kind: 'unauthorised', detail: '401' } });
  await until(async () => (await open()).some(({ subject }) => subject === 'last'), { what: 'all is noted' });
  const refusal = (await open()).find(({ subject }) => subject === 'anthropic/dear');
  if (refusal === undefined) throw new Error('no notice of the model');
  expect(refusal.count).toBe(1);
  expect(alertText(texts, refusal)).toMatch(/^anthropic\/dear isn’t available to my key: 403\./);
  observers.begin(dear).end({ kind: 'answered', ...counted });
  await until(async () => (await open()).length === 1, { what: 'the end of the notice of the model' });
});

it('tells the owner once that a model is asked without tools, unless they have said so', async () => {
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
  expect(alertText(noticesFor('en'), notice)).toMatch(/^house\/gemma3:4b doesn’t support tools, so I answer/);
});

it('tells the owner once which window a server has named, and keeps to it', async () => {
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
  expect(alertText(noticesFor('en'), notice)).toMatch(/^house\/small says .* 8192 tokens.*"window": 8192/);
});
