/** Everything that sends or fetches, against a server that redirects to another host. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { fetchMedia as fetchFromDiscord } from '../../channels/discord/media.ts';
import { makeRequest } from '../../channels/discord/rest-request.ts';
import { SignalApi } from '../../channels/signal/api.ts';
import { startSocket } from '../../channels/signal/socket.ts';
import { connectBot } from '../../channels/telegram/bot-api.ts';
import { fetchMedia as fetchFromTelegram } from '../../channels/telegram/media.ts';
import { outboundFetch } from '../../src/http/outbound-fetch.ts';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { createOpenAiProvider } from '../../src/models/openai/openai.ts';
import { aPatientClock, aRequest, eventsOf, failureIn } from '../models/builders.ts';

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Starts a server that redirects everything to another one, which counts what it gets. */
async function aRedirect(status: number) {
  let asked = 0;
  let arrived = 0;
  const other = createServer((request, response) => {
    arrived += 1;
    request.resume();
    response.setHeader('content-type', 'application/json').end('{"ok":true,"result":{}}');
  });
  const elsewhere = await listen(other);
  const server = createServer((request, response) => {
    asked += 1;
    request.resume();
    response.writeHead(status, { location: `${elsewhere}${request.url}` }).end();
  });
  for (const each of [server, other])
    each.on('upgrade', (request, socket) => {
      if (each === other) arrived += 1;
      else asked += 1;
      socket.end(
        `HTTP/1.1 ${status} Moved\r\nlocation: ${elsewhere}${request.url}\r\ncontent-length: 0\r\n\r\n`,
      );
    });
  const url = await listen(server);
  return { url, elsewhere, counts: () => ({ wasAsked: asked > 0, arrived }) };
}

type Target = Awaited<ReturnType<typeof aRedirect>>;

const token = '1:AA';
const signal = () => new AbortController().signal;
const providers = { anthropic: createAnthropicProvider, openai: createOpenAiProvider } as const;

async function askModel(api: keyof typeof providers, { url }: Target, fetch?: typeof globalThis.fetch) {
  const provider = providers[api]({
    model: 'm',
    apiKeys: ['key'],
    baseUrl: `${url}/v1`,
    ...(fetch && { fetch }),
  });
  throw new Error(failureIn(await eventsOf(provider, aRequest()))?.detail);
}

const wanted = (ref: string) => ({ ref: { ref, kind: 'image' }, maxBytes: 1_000, signal: signal() }) as never;

const telegram = ({ url }: Target) => connectBot({ token, apiRoot: url } as never, outboundFetch);
const signalApi = ({ url }: Target) => new SignalApi({ apiUrl: url, callTimeoutMs: 5_000 });

async function drain(bytes: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of bytes);
}

/** Resolves with the reason for which the socket went down. */
function socketTo({ url }: Target): Promise<string> {
  return new Promise((resolve) => {
    const socket = startSocket({
      url: url.replace('http', 'ws'),
      clock: aPatientClock(),
      heartbeatMs: 10_000,
      onFrame: () => undefined,
      onOpen: () => resolve('open'),
      onDown: (reason) => void socket.stop().then(() => resolve(reason)),
    });
  });
}

/** Each call throws, or returns what says that it failed. */
const callers: Readonly<Record<string, (to: Target) => Promise<unknown>>> = {
  'a model of the Anthropic kind': (to) => askModel('anthropic', to, outboundFetch),
  'a model of the OpenAI kind': (to) => askModel('openai', to, outboundFetch),
  'an SDK with its own fetch': (to) => askModel('openai', to),
  'a call to Telegram': async (to) =>
    (await telegram(to)).api.sendMessage({ chat_id: 1, text: 'secret' }, signal()),
  'an upload to Telegram': async (to) => {
    const { api, fileOf } = await telegram(to);
    const document = fileOf({ path: import.meta.filename, name: 'a.txt' } as never, signal());
    return api.sendDocument({ chat_id: 1, document }, signal());
  },
  'a download from Telegram': ({ url: apiRoot }) => {
    const getFile = async () => ({ file_path: 'documents/a' });
    return drain(fetchFromTelegram({ apiRoot, token, getFile }, wanted('file')));
  },
  'a call to Discord': ({ url }) =>
    makeRequest(`${url}/api/v10/x`, { method: 'POST', body: '{}', headers: {} }),
  'a download from Discord': ({ url: apiBase }) =>
    drain(fetchFromDiscord({ apiBase } as never, wanted(`1/2/3 ${apiBase}/a.png?ex=secret`))),
  'a send to Signal’s server': (to) =>
    signalApi(to).send('POST', '/v2/send', { body: '{}', signal: signal() }),
  'a question to Signal’s server': (to) => signalApi(to).about(signal()),
  'a download from Signal’s server': (to) => signalApi(to).open('/v1/attachments/x', signal()),
  'the socket to Signal’s server': socketTo,
  'an export of traces': ({ url }) => outboundFetch(`${url}/v1/traces`, { method: 'POST', body: '{}' }),
};

const cases = Object.entries(callers).flatMap(([name, caller]) =>
  [302, 307].map((status) => [name, status, caller] as const),
);

it.each(cases)(
  'keeps %s from another host after status %i and says which host and what to set',
  async (_name, status, call) => {
    const target = await aRedirect(status);
    const said = String(await call(target).catch((error: unknown) => everything(error)));
    const { url, elsewhere } = target;
    expect(said).toContain(`the server at ${url} redirects to ${elsewhere}, which`);
    expect(said).toContain(`set ${elsewhere} in place of ${url}`);
    expect(said).not.toMatch(/secret|1:AA|nothing listens/);
    expect(target.counts()).toEqual({ wasAsked: true, arrived: 0 });
  },
);

it.each([
  ['/login', /redirects to another path of its own, .* check the path/],
  ['', /redirects to an invalid address; check the address/],
  ['https://user:hidden@other.example/x?token=hidden', /redirects to https:\/\/other\.example, which/],
])('names the target of a redirect to "%s" without secrets', async (location, says) => {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(302, { location }).end();
  });
  const said = everything(
    await outboundFetch(await listen(server), { method: 'POST', body: '{}' }).catch(
      (error: unknown) => error,
    ),
  );
  expect(said).toMatch(says);
  expect(said).not.toContain('hidden');
});

/** The words of an error and of those behind it. */
function everything(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const { error: inner, cause } = error as Error & { readonly error?: unknown };
  return [error.message, everything(inner), everything(cause)].filter(Boolean).join(' / ');
}
