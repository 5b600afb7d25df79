import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModelSettings } from '../../src/config/config.ts';
import { Secret } from '../../src/config/secret.ts';
import { configuredModel } from '../../src/models/configured-model.ts';
import { createModel } from '../../src/models/registry.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import { aPatientClock, eventsOf, textIn } from './builders.ts';

function settings(changes: Partial<ModelSettings>): ModelSettings {
  const apiKeys = [new Secret('test-key')];
  return {
    provider: 'anthropic',
    id: '',
    apiKeys,
    baseUrl: server.url,
    fallbacks: [],
    maxTokens: 1,
    ...changes,
  };
}

let server: AnthropicServer;
beforeAll(async () => {
  server = await startAnthropicServer();
});
afterAll(() => server.close());

describe('the model of the settings', () => {
  it('is the demo model without any key', async () => {
    const model = createModel({ provider: 'demo' }, { clock: aPatientClock() });
    expect(textIn(await eventsOf(model))).toContain('[demo model]');
  });

  it('is Claude with retries and fallbacks', async () => {
    server.script([{ status: 529 }, { status: 404 }, { text: 'ok' }]);
    const clock = aPatientClock();
    const model = createModel(
      {
        provider: 'anthropic',
        model: 'claude-opus-5-5',
        apiKeys: ['', 'test-key'],
        baseUrl: server.url,
        fallbacks: ['claude-sonnet-5-5'],
      },
      { clock, random: () => 0.5 },
    );
    expect(model.model()).toMatchObject({ id: 'claude-opus-5-5', contextWindow: 1_000_000, canThink: true });
    expect((await eventsOf(model)).at(-1)).toMatchObject({ type: 'complete', model: 'claude-sonnet-5-5' });
    expect(clock.waits).toEqual([2200]);
  });

  it('tells the longest answer of the settings', async () => {
    const { provider } = configuredModel(
      settings({ id: 'claude-haiku-4-5', maxTokens: 5000 }),
      aPatientClock(),
    );
    expect(provider.model().answerTokens).toBe(5000);
  });

  it('tells what a call cost, by the configured prices of the model and the list prices of a fallback', async () => {
    const usage = { input_tokens: 1000, output_tokens: 100 };
    server.script([{ text: 'one', usage }, { status: 404 }, { text: 'two', usage }]);
    const million = 1_000_000;
    const prices = { input: 7 * million, output: 11 * million, cacheWrite: 0, cacheRead: 0 };
    const fallbacks = ['claude-haiku-4-5'];
    const { provider } = configuredModel(
      settings({ id: 'claude-opus-5', prices, fallbacks }),
      aPatientClock(),
    );
    const costs = [await eventsOf(provider), await eventsOf(provider)].map((events) => events.at(-1));
    expect(costs).toMatchObject([{ cost: 7000 + 1100 }, { cost: 1000 + 500 }]);
    expect(provider.model().prices).toEqual(prices);
  });

  it('is refused without a key, by the name of the model', () => {
    const create = () =>
      createModel(
        { provider: 'anthropic', model: 'claude-opus-5-5', apiKeys: [' '] },
        { clock: aPatientClock() },
      );
    expect(create).toThrow(expect.objectContaining({ code: 'config_invalid' }));
  });
});
