/**
 * The library's own request, with the response made harmless before the library acts on it: the library keeps limits
 * in memory for as long as a header says, and reads a response however long it is.
 */
import { STATUS_CODES } from 'node:http';
import { Readable } from 'node:stream';
import { DefaultRestOptions, type ResponseLike } from 'discord.js';
import { request } from 'undici';
import { longestJson, longestText, readJson } from '#channel-kit/read-json.ts';
import { isRedirect, RedirectRefused } from '#channel-kit/redirects.ts';
import { askedWaitMs, clampRemote, longestWaitMs } from '#channel-kit/remote-number.ts';
import { proxyPauseMs } from './failures.ts';
import { UploadForm } from './upload-form.ts';

type MakeRequest = typeof DefaultRestOptions.makeRequest;
type RequestOptions = Parameters<MakeRequest>[1];

/** A wait that is too long to be kept in memory, or only assumed; shaped like the library's own error. */
class UnkeptRateLimit extends Error {
  /** In ms. */
  readonly retryAfter: number;
  readonly timeToReset: number;

  constructor(retryAfter: number) {
    super('Discord asks for a wait');
    this.retryAfter = retryAfter;
    this.timeToReset = retryAfter;
  }
}

/** Something in front of Discord redirected the call, so nothing was done. */
class Redirect extends Error {
  readonly status: number;

  constructor(url: string, { status, headers }: Pick<ResponseLike, 'status' | 'headers'>) {
    const location = headers.get('location') ?? '';
    super(
      isRedirect(status) ? new RedirectRefused(new URL(url), location).message : 'the call was redirected',
    );
    this.status = status;
  }
}

const longestBucket = 128;

/** Seconds and counts, as the headers give them. */
const headerRanges = {
  'retry-after': { min: 0, max: longestWaitMs / 1000 },
  'x-ratelimit-reset-after': { min: 0, max: longestWaitMs / 1000 },
  'x-ratelimit-limit': { min: 1, max: 1_000_000 },
  'x-ratelimit-remaining': { min: 0, max: 1_000_000 },
} as const;

/** Makes one request. Throws what the library's own throws, what `faultOf` returns, or an Error for endless answers. */
export const makeRequest: MakeRequest = async (url, init) => {
  const form: unknown = init.body;
  const response =
    form instanceof UploadForm
      ? await sendForm(url, init, form)
      : await DefaultRestOptions.makeRequest(url, init);
  const fault = faultOf(url, response);
  if (fault !== undefined) {
    await readBody(response);
    throw fault;
  }
  const { headers, status, statusText, ok } = response;
  clampHeaders(headers);
  let bodyUsed = false;
  const used = (): ResponseLike => {
    bodyUsed = true;
    return response;
  };
  return {
    ...{ headers, status, statusText, ok, body: null },
    get bodyUsed() {
      return bodyUsed;
    },
    arrayBuffer: async () => Uint8Array.from(await readBody(used())).buffer,
    text: async () => (await readBody(used())).toString('utf8'),
    json: () => readJson(chunksOf(used()), url.includes('/guilds/') ? longestText : longestJson),
  };
};

/** Returns the fault of a response that the library would wait on for too long, or mistake for a success. */
function faultOf(url: string, response: ResponseLike): Error | undefined {
  const { status, ok, headers } = response;
  // A ban at the edge may come without a duration.
  const asked = askedWaitMs(headers.get('retry-after'), 1000);
  const isKept = asked !== undefined && asked <= longestWaitMs;
  if (status === 429 && !isKept) return new UnkeptRateLimit(asked ?? proxyPauseMs);
  if (status >= 300 && status < 400) return new Redirect(url, response);
  // It isn't known whether the call got through.
  if (ok && headers.get('content-type')?.startsWith('text/html'))
    return new Error('the answer was a web page');
  return undefined;
}

/** Sends a form as it is read. The library's own request would collect all of it first. */
async function sendForm(url: string, init: RequestOptions, form: UploadForm): Promise<ResponseLike> {
  const answer = await request(url, {
    method: 'POST',
    headers: { ...(init.headers as Record<string, string>), ...form.headers },
    body: Readable.from(form.bytes(), { objectMode: false }),
    signal: init.signal ?? null,
  });
  const { statusCode: status, headers, body } = answer;
  return {
    ...{ status, statusText: STATUS_CODES[status] ?? '', ok: status >= 200 && status < 300 },
    headers: new Headers(headers as Record<string, string>),
    // Only the stream is used: the rest is made from it.
    body: body as unknown as ResponseLike['body'],
    bodyUsed: false,
    arrayBuffer: () => body.arrayBuffer(),
    json: () => body.json(),
    text: () => body.text(),
  };
}

function clampHeaders(headers: ResponseLike['headers']): void {
  for (const [name, range] of Object.entries(headerRanges)) {
    const value = headers.get(name);
    if (value === null) continue;
    const number = clampRemote(value, { ...range, fallback: Number.NaN });
    if (Number.isNaN(number)) headers.delete(name);
    else headers.set(name, String(number));
  }
  if ((headers.get('x-ratelimit-bucket')?.length ?? 0) > longestBucket) headers.delete('x-ratelimit-bucket');
}

function chunksOf({ body }: ResponseLike): AsyncIterable<Uint8Array> {
  return (body ?? []) as AsyncIterable<Uint8Array>;
}

/** Reads a body that isn't JSON, such as a proxy's page, or one that is discarded. */
async function readBody(response: ResponseLike): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunksOf(response)) {
    length += chunk.length;
    if (length > longestJson) throw new Error('Discord’s answer does not end');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
