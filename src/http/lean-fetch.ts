import type { ClientRequest, IncomingMessage } from 'node:http';
import { requestHttp, requestHttps } from './node-http.ts';

/** A connection that does not stand after this long is given up: nothing was sent over it, ms. */
const connectTimeoutMs = 10_000;
/** Longest body that is read into memory, bytes; files are streamed. */
const maxBodyBytes = 64 * 1024 * 1024;

/**
 * `fetch` for what Parley says most: a short text there, JSON or a stream of text back. It goes straight over
 * node:http and its kept connections, without the web streams in between: measured per call, 0.16 instead of
 * 0.55 ms of processor time, and half the time until the request has arrived; a message of a burst takes 1.31 times
 * as much without it. What is not of that kind (uploads, redirects) goes the platform's own way. Rejects like it: a
 * `TypeError` whose cause is the system's error, or the signal's reason.
 */
export const leanFetch: typeof globalThis.fetch = async (input, init = {}) => {
  const { body } = init;
  const isPlain = body === undefined || body === null || typeof body === 'string';
  if (!isPlain || !(typeof input === 'string' || input instanceof URL)) return fetch(input, init);
  const url = new URL(input);
  const answer = await exchange(url, { ...init, body: body ?? undefined });
  const status = answer.statusCode ?? 0;
  if (status >= 300 && status < 400 && answer.headers.location !== undefined) {
    // Sent elsewhere, it has had no effect here.
    answer.resume();
    return fetch(input, init);
  }
  return responseOf(answer, url);
};

type Exchange = Omit<RequestInit, 'body'> & { readonly body: string | undefined };

function exchange(url: URL, { method = 'GET', headers, body, signal }: Exchange): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const send = url.protocol === 'https:' ? requestHttps : requestHttp;
    const fields = fieldsOf(headers);
    if (body !== undefined) fields['content-length'] = String(Buffer.byteLength(body));
    const call = send(url, { method, headers: fields });
    let answer: IncomingMessage | undefined;
    // With its last bytes read, the call is about to leave its socket: an error of the socket would end the process.
    const onAbort = () => (answer ?? call).destroy(asError(signal?.reason));
    signal?.addEventListener('abort', onAbort, { once: true });
    call.once('close', () => {
      signal?.removeEventListener('abort', onAbort);
      // Without an answer or an error before it, as behind an upgrade that nobody asked for: nothing else would end it.
      if (answer === undefined) reject(new TypeError('fetch failed', { cause: unanswered() }));
    });
    let isStanding = true;
    call.on('error', (error) => {
      if (signal?.aborted) return reject(signal.reason);
      // Before the connection stands, TLS included, nothing has been sent.
      if (!isStanding) Object.assign(error, { syscall: 'connect' });
      reject(new TypeError('fetch failed', { cause: error }));
    });
    call.once('response', (begun) => {
      answer = begun;
      resolve(begun);
    });
    call.once('socket', (socket) => {
      isStanding = !socket.connecting;
      if (isStanding) return;
      const limit = limitConnecting(call);
      socket.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
        isStanding = true;
        clearTimeout(limit);
      });
    });
    call.end(body);
  });
}

/** By name in lower case. A plain object needs no `Headers`, which would load Node's undici and whose iterator sorts. */
function fieldsOf(headers: RequestInit['headers'] = {}): Record<string, string> {
  if (Array.isArray(headers)) return Object.fromEntries(new Headers(headers));
  const pairs = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  return Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), String(value)]));
}

function limitConnecting(call: ClientRequest): NodeJS.Timeout {
  const limit = setTimeout(() => {
    call.destroy(Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' }));
  }, connectTimeoutMs);
  call.once('close', () => clearTimeout(limit));
  return limit;
}

function unanswered(): Error {
  return Object.assign(new Error('the connection was closed without an answer'), { code: 'ECONNRESET' });
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}

/** As much of a `Response` as the SDKs use. Its body is Node's own stream, which is as iterable as a web stream. */
function responseOf(answer: IncomingMessage, url: URL): Response {
  const status = answer.statusCode ?? 0;
  let headers: Headers | undefined;
  const response = {
    ok: status >= 200 && status < 300,
    status,
    statusText: answer.statusMessage ?? '',
    url: url.href,
    redirected: false,
    // Made on demand: grammY never reads them.
    get headers() {
      headers ??= headersOf(answer);
      return headers;
    },
    body: answer,
    text: async () => (await bufferOf(answer)).toString(),
    // Its shape is for the reader to judge: one hostile event must not take the others of its answer along.
    json: async () => JSON.parse((await bufferOf(answer)).toString()),
    arrayBuffer: async () => new Uint8Array(await bufferOf(answer)).buffer,
    blob: async () => new Blob([new Uint8Array(await bufferOf(answer))]),
    bytes: async () => new Uint8Array(await bufferOf(answer)),
  };
  // Nothing that calls this asks for clone() or formData().
  return response as unknown as Response;
}

async function bufferOf(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    bytes += chunk.length;
    // Leaving the loop ends the connection.
    if (bytes > maxBodyBytes) throw new TypeError(`the answer is longer than ${maxBodyBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '');
  return headers;
}
