import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readEnvironment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { claimModels, configuredModel } from '../../src/models/models.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import { type OpenAiServer, startOpenAiServer } from '../platforms/openai/server.ts';
import { sharedFolder } from '../support/own-folder.ts';
import { silentLog } from '../support/silent-log.ts';
import { aPatientClock, eventsOf, textIn } from './builders.ts';

let claude: AnthropicServer;
let local: OpenAiServer;
const folder = sharedFolder();
beforeAll(async () => {
  [claude, local] = await Promise.all([
    startAnthropicServer({ keys: ['sk-ant-0000001'] }),
    startOpenAiServer({ flavour: 'ollama', keys: [] }),
  ]);
});
afterAll(() => Promise.all([claude.close(), local.close()]));

/** Returns the models of a configuration file, with a Claude key in the environment. */
function configured(file: object = {}, values: Record<string, string> = {}) {
  const path = join(folder(), 'parley.config.json');
  writeFileSync(path, JSON.stringify(file));
  const anthropic = { ANTHROPIC_API_KEY: 'sk-ant-0000001', ANTHROPIC_BASE_URL: claude.url };
  const config = loadConfig(readEnvironment({ ...anthropic, ...values, PARLEY_CONFIG: path }), folder());
  const clock = aPatientClock();
  return { ...configuredModel(config, { clock, log: silentLog }), config, clock };
}

describe('configured models', () => {
  it('uses the demo model without any key', async () => {
    const { models, name, isDemo } = configured({}, { ANTHROPIC_API_KEY: '' });
    expect([name, isDemo]).toEqual(['demo', true]);
    expect(textIn(await eventsOf(models.stackFor(name)))).toContain('[demo model]');
  });

  it('falls back across providers, each with its own prices and limits', async () => {
    const usage = { input_tokens: 1000, output_tokens: 100 };
    const prices = { input: 7, output: 11, cacheWrite: 0, cacheRead: 0 };
    const { models, clock } = configured({
      providers: { house: { baseUrl: local.url } },
      model: 'careful',
      models: {
        careful: {
          provider: 'anthropic',
          id: 'claude-opus-5',
          maxTokens: 5000,
          prices,
          fallbacks: ['cheap'],
        },
        cheap: { provider: 'house', id: 'qwen3', maxTokens: 700, prices: { ...prices, input: 1, output: 2 } },
        small: { provider: 'house', id: 'qwen3', window: 8192 },
      },
    });
    const stack = models.stackFor('careful');
    expect(stack.model()).toMatchObject({ answerTokens: 5000, prices: { input: 7_000_000 } });
    claude.script([{ text: 'one', usage }, { status: 529 }, { status: 529 }, { status: 529 }]);
    local.script([{ text: 'two', usage }]);
    expect((await eventsOf(stack)).at(-1)).toMatchObject({ cost: 7000 + 1100, model: 'claude-opus-5' });
    expect((await eventsOf(stack)).at(-1)).toMatchObject({ cost: 1000 + 200, model: 'qwen3' });
    expect(clock.waits).toHaveLength(2);
    // Neither is asked for a longer answer than its own maximum.
    expect([claude.requests.at(-1)?.body.max_tokens, local.requests.at(-1)?.body.max_tokens]).toEqual([
      5000, 700,
    ]);
    expect(models.stackFor('small').model().answerTokens).toBe(2048);
  });

  it('chooses the model by session, agent and default, and separately for titles and summaries', () => {
    const { models, config } = configured({
      agents: [{ id: 'main' }, { id: 'clerk', model: 'claude-haiku-5-5', titleModel: 'demo' }],
    });
    const sonnet = 'anthropic/claude-sonnet-5-5';
    const turnModels = { byAgent: { main: sonnet, clerk: 'claude-haiku-5-5' }, byDefault: sonnet };
    const titleModels = { byAgent: { main: sonnet, clerk: 'demo' }, byDefault: sonnet };
    expect(claimModels(models, { ...config, titles: true })).toEqual({ turnModels, titleModels });
    expect(claimModels(models, { ...config, titles: false })).toEqual({ turnModels });
    expect(models.nameFor('clerk', 'title', 'claude-opus-5')).toBe('demo');
    expect(models.nameFor('clerk', 'summary', 'claude-opus-5')).toBe('claude-opus-5');
  });

  it('replaces a model name that is gone and knows which names people may choose', () => {
    const { models } = configured();
    expect(models.stackFor('gone').model().id).toBe('claude-sonnet-5-5');
    const names = ['claude-opus-5', 'anthropic/x', 'openai/gpt-5', 'ollama/qwen3', 'demo', 'constructor'];
    expect(names.map(models.isKnown)).toEqual([true, true, false, true, true, false]);
  });
});
