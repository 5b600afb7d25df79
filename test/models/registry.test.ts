import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createModel } from '../../src/models/registry.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import { aPatientClock, eventsOf, textIn } from './builders.ts';

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

  it('is refused without a key, by the name of the model', () => {
    const create = () =>
      createModel(
        { provider: 'anthropic', model: 'claude-opus-5-5', apiKeys: [' '] },
        { clock: aPatientClock() },
      );
    expect(create).toThrow(expect.objectContaining({ code: 'config_invalid' }));
  });
});
