/** Everything that sends or fetches, against a server that redirects to another host. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { makeRequest } from '../../channels/discord/rest-request.ts';
import { SignalApi } from '../../channels/signal/api.ts';
import { startSocket } from '../../channels/signal/socket.ts';
import { connectBot } from '../../channels/telegram/bot-api.ts';
import { fetchMedia as fetchFromTelegram } from '../../channels/telegram/media.ts';
import { leanFetch } from '../../src/http/lean-fetch.ts';
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

const telegram = ({ url }: Target) => connectBot({ token, apiRoot: url } as never, leanFetch);
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
const callers: Readonly<Record<string, readonly [call: (to: Target) => Promise<unknown>, says: RegExp]>> = {
  'a model of the Anthropic kind': [(to) => askModel('anthropic', to, leanFetch), /redirects to http/],
  'a model of the OpenAI kind': [(to) => askModel('openai', to, leanFetch), /redirects to http/],
  'an SDK with its own fetch': [(to) => askModel('openai', to), /redirects to http/],
  'a call to Telegram': [
    async (to) => (await telegram(to)).api.sendMessage({ chat_id: 1, text: 'secret' }, signal()),
    /redirects to http/,
  ],
  'an upload to Telegram': [
    async (to) => {
      const { api, fileOf } = await telegram(to);
      const document = fileOf({ path: import.meta.filename, name: 'a.txt' } as never, signal());
      return api.sendDocument({ chat_id: 1, document }, signal());
    },
    /redirects to http/,
  ],
  'a download from Telegram': [
    ({ url: apiRoot }) => {
      const getFile = async () => ({ file_path: 'documents/a' });
      const ref = { ref: { ref: 'file', kind: 'image' }, maxBytes: 1_000, signal: signal() } as never;
      return drain(fetchFromTelegram({ apiRoot, token, getFile }, ref));
    },
    /could not be fetched/,
  ],
  'a call to Discord': [
    ({ url }) => makeRequest(`${url}/api/v10/x`, { method: 'POST', body: '{}', headers: {} }),
    /redirected/,
  ],
  'a send to Signal’s server': [
    async (to) => (await signalApi(to).send('POST', '/v2/send', { body: '{}', signal: signal() })).status,
    /^30\d$/,
  ],
  'a question to Signal’s server': [(to) => signalApi(to).about(signal()), /answered 30\d/],
  'a download from Signal’s server': [
    async (to) => (await signalApi(to).open('/v1/attachments/x', signal())).statusCode,
    /^30\d$/,
  ],
  'the socket to Signal’s server': [socketTo, /the connection failed/],
  'an export of traces': [
    ({ url }) => leanFetch(`${url}/v1/traces`, { method: 'POST', body: '{}' }),
    /redirects to/,
  ],
};

const cases = Object.entries(callers).flatMap(([name, caller]) =>
  [302, 307].map((status) => [name, status, ...caller] as const),
);

it.each(cases)(
  '%s that is redirected with %i to another host never arrives there, and fails',
  async (...args) => {
    const [, status, call, says] = args;
    const target = await aRedirect(status);
    const said = await call(target).catch((error: unknown) => everything(error));
    expect(String(said)).toMatch(says);
    expect(String(said)).not.toContain(token);
    expect(target.counts()).toEqual({ wasAsked: true, arrived: 0 });
  },
);

/** The words of an error and of those behind it. */
function everything(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const { error: inner, cause } = error as Error & { readonly error?: unknown };
  return [error.message, everything(inner), everything(cause)].filter(Boolean).join(' / ');
}
