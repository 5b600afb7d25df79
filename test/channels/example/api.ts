/** The calls to the network. Each uses its own connection, so it is certain whether one was ever established. */
import { type IncomingMessage, request } from 'node:http';
import { readJson } from '#channel-kit/read-json.ts';
import type { ExampleConfig } from './config.ts';
import type { Answer, CallEnd } from './outbound.ts';

export type Request = { readonly method: string; readonly path: string; readonly body?: object };

/** Makes a call. Never rejects: the outcome is a value. An abort counts as no answer. */
export function call(config: ExampleConfig, wanted: Request, signal: AbortSignal): Promise<CallEnd> {
  let isConnected = false;
  return open(config, wanted, signal, () => {
    isConnected = true;
  })
    .then(async (response) => {
      // The server is the other half of this example; a real one would need a schema here.
      const body = (await readJson(response)) as Answer;
      return { kind: 'answer', status: response.statusCode ?? 0, body } as const;
    })
    .catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      return { kind: isConnected ? 'no-answer' : 'not-connected', reason } as const;
    });
}

/** Resolves with the response once its headers have arrived; rejects if there is none. */
export function open(
  { url, token }: ExampleConfig,
  { method, path, body }: Request,
  signal: AbortSignal,
  onConnect: () => void = () => undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const sent = request(`${url}${path}`, { method, headers, signal, agent: false });
    sent.on('socket', (socket) => socket.once('connect', onConnect));
    sent.on('response', resolve);
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
