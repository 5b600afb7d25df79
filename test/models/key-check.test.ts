import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { judgeKeys, reachAdvice } from '../../src/cli/doctor/model-checks.ts';
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

describe('the key check', () => {
  it('checks each key free of charge and tells accepted from rejected ones', async () => {
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

  it('removes a key from the refusal that quotes it', async () => {
    expect(await check('openai', gpt.url, 'sk-very-secret')).toEqual([
      { kind: 'rejected', reason: '401 Incorrect API key provided: [secret]' },
    ]);
  });

  it("reports Gemini's rejection in its own words", async () => {
    const gemini = await startOpenAiServer({ flavour: 'gemini' });
    onTestFinished(gemini.close);
    expect(await check('openai', gemini.url, 'wrong-key')).toEqual([
      { kind: 'rejected', reason: '400 API key not valid. Please pass a valid API key.' },
    ]);
  });

  it('does not judge a key if the server is unreachable or not a model server', async () => {
    const [away] = await check('openai', 'http://127.0.0.1:1/v1', 'test-key');
    expect(away).toEqual({ kind: 'unreachable', reason: 'no connection: ECONNREFUSED' });
    const [foreign] = await check('openai', `${gpt.url}/elsewhere`, 'test-key');
    expect(foreign).toEqual({
      ...{ kind: 'elsewhere', reason: `404 (asked ${gpt.url}/elsewhere/models)` },
      right: `${new URL(gpt.url).origin}/v1`,
    });
  });

  it.each(['anthropic', 'openai'] as const)(
    'does not judge a key if a server of the kind %s takes calls but lists no models',
    async (kind) => {
      const server = createServer((request, response) => {
        request.resume();
        const isCall =
          request.method === 'POST' && /\/(?:messages|chat\/completions)$/.test(request.url ?? '');
        response.writeHead(isCall ? 400 : 404, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ error: { message: isCall ? 'model is required' : 'Not Found' } }));
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void server.close());
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const [answer] = await check(kind, `${url}/v1`, 'test-key');
      expect(answer).toEqual({ kind: 'unclear', reason: `404 Not Found (asked ${url}/v1/models)` });
    },
  );

  it('fails the check only if no key is accepted', () => {
    const [right, wrong] = [
      { kind: 'accepted', models: [] },
      { kind: 'rejected', reason: '401' },
    ] as const;
    const provider = { keysEnv: 'HOUSE_API_KEY', apiKeys: [new Secret('one'), new Secret('two')] };
    expect(judgeKeys('house', provider, [right, wrong])).toMatchObject({
      result: 'warning',
      detail: 'house rejects key 2 of 2 in HOUSE_API_KEY: 401',
    });
    const unpaid = { kind: 'rejected', reason: '402 No credit', isCredit: true } as const;
    expect(judgeKeys('house', provider, [unpaid, wrong])).toMatchObject({
      result: 'failed',
      detail:
        'house reports a problem with the account of key 1 of 2 in HOUSE_API_KEY: 402 No credit\nhouse rejects key 2 of 2 in HOUSE_API_KEY: 401',
      fix: expect.stringContaining('valid key'),
    });
    expect(judgeKeys('house', provider, [unpaid, right]).fix).toBe(
      'check credit and limits of the account at house',
    );
    const elsewhere = { kind: 'elsewhere', reason: '404', right: 'http://house/v1' } as const;
    expect(judgeKeys('house', provider, [elsewhere, elsewhere])).toMatchObject({
      result: 'failed',
      fix: 'set baseUrl of house to http://house/v1',
    });
    expect(judgeKeys('house', provider, [right, right]).detail).toBe('accepted (2 keys)');
  });
});

it('gives advice about an unreachable server that fits its address', () => {
  const local = 'http://127.0.0.1:11434/v1';
  expect(reachAdvice(local, false)).toBe('start the server at 127.0.0.1:11434, or correct its address');
  expect(reachAdvice(local, true)).toContain('its address is host.docker.internal, not 127.0.0.1');
  expect(reachAdvice('http://0.0.0.0:11434/v1', false)).toContain('start the server');
  expect(reachAdvice('https://models.example/v1', true)).toBe(
    'check the address models.example and the way there',
  );
  expect(reachAdvice(undefined, true)).toBe("check this machine's network");
});
