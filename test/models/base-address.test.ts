import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { createOpenAiProvider } from '../../src/models/openai/openai.ts';
import { aRequest } from './builders.ts';

const providers = { anthropic: createAnthropicProvider, openai: createOpenAiProvider } as const;
type Api = keyof typeof providers;

const answers: Readonly<Record<string, unknown>> = {
  '/v1/chat/completions': {
    ...{ id: 'a', object: 'chat.completion', model: 'm' },
    choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  },
  '/v1/messages': {
    ...{ id: 'a', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn' },
    content: [{ type: 'text', text: 'hi' }],
    usage: { input_tokens: 1, output_tokens: 1 },
  },
};

/** Starts a server with both APIs under `/v1` alone. */
async function aServer(): Promise<string> {
  const server = createServer(async (request, response) => {
    await text(request);
    const answer = answers[request.url ?? ''];
    response.writeHead(answer ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? { detail: 'Not Found' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function ask(api: Api, baseUrl: string) {
  const provider = providers[api]({ model: 'm', apiKeys: ['key'], baseUrl });
  return provider.send(aRequest(), new AbortController().signal);
}

const tails = ['', '/', '/v1', '/v1/', '/v1/chat/completions', '/v1/messages', '/v1/models'];
const cases = (['anthropic', 'openai'] as const).flatMap((api) => tails.map((tail) => [api, tail] as const));

it.each(cases)('reaches a server of the kind %s whose base address ends in "%s"', async (api, tail) => {
  expect((await ask(api, `${await aServer()}${tail}`)).text).toBe('hi');
});

it.each(['anthropic', 'openai'] as const)(
  'names a wrong base address of the kind %s in the failure',
  async (api) => {
    const url = await aServer();
    await expect(ask(api, `${url}/wrong/v1`)).rejects.toThrow(`${url}/wrong/v1/`);
  },
);
