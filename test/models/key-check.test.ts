import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { judgeKeys } from '../../src/cli/doctor/model-checks.ts';
import { Secret } from '../../src/config/secret.ts';
import { checkKeys } from '../../src/models/key-check.ts';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import { type OpenAiServer, startOpenAiServer } from '../platforms/openai/server.ts';
import { patienceMs } from '../support/patience.ts';

let claude: AnthropicServer;
let gpt: OpenAiServer;
beforeAll(async () => {
  [claude, gpt] = await Promise.all([startAnthropicServer(), startOpenAiServer()]);
});
afterAll(() => Promise.all([claude.close(), gpt.close()]));

const check = (kind: 'anthropic' | 'openai', baseUrl: string, ...keys: readonly string[]) =>
  checkKeys({ kind, baseUrl, apiKeys: keys.map((key) => new Secret(key)) }, AbortSignal.timeout(patienceMs));

describe('the keys of a provider', () => {
  it('are each asked for free, and told apart', async () => {
    expect(await check('anthropic', claude.url, 'test-key', 'wrong-key')).toEqual([
      { kind: 'accepted', models: ['claude-sonnet-5-5'] },
      { kind: 'rejected', reason: '401 invalid x-api-key' },
    ]);
    expect([claude.requests, claude.lists]).toEqual([[], ['test-key', 'wrong-key']]);
    expect(await check('openai', gpt.url, 'test-key')).toEqual([
      { kind: 'accepted', models: ['gpt-6-luna'] },
    ]);
    expect(gpt.requests).toEqual([]);
  });

  it('are taken out of the refusal that repeats them', async () => {
    expect(await check('openai', gpt.url, 'sk-very-secret')).toEqual([
      { kind: 'rejected', reason: '401 Incorrect API key provided: [secret]' },
    ]);
  });

  it('are rejected by Gemini in its own words', async () => {
    const gemini = await startOpenAiServer({ flavour: 'gemini' });
    onTestFinished(gemini.close);
    expect(await check('openai', gemini.url, 'wrong-key')).toEqual([
      { kind: 'rejected', reason: '400 API key not valid. Please pass a valid API key.' },
    ]);
  });

  it('are not judged by a server that is away, or that has no list of models', async () => {
    const [away] = await check('openai', 'http://127.0.0.1:1/v1', 'test-key');
    expect(away).toEqual({ kind: 'unreachable', reason: 'no connection: ECONNREFUSED' });
    const [foreign] = await check('openai', `${gpt.url}/elsewhere`, 'test-key');
    expect(foreign).toEqual({ kind: 'unclear', reason: `404 (asked ${gpt.url}/elsewhere/models)` });
  });

  it('fail the check only when none of them is accepted', () => {
    const [right, wrong] = [
      { kind: 'accepted', models: [] },
      { kind: 'rejected', reason: '401' },
    ] as const;
    const provider = { keysEnv: 'HOUSE_API_KEY', apiKeys: [new Secret('one'), new Secret('two')] };
    expect(judgeKeys('house', provider, [right, wrong])).toMatchObject({
      result: 'warning',
      detail: 'house rejects key 2 of 2 in HOUSE_API_KEY: 401',
    });
    expect(judgeKeys('house', provider, [wrong, wrong]).result).toBe('failed');
    expect(judgeKeys('house', provider, [right, right]).detail).toBe('accepted (2 keys)');
  });
});
