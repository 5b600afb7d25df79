/**
 * The library's own request, with what comes back made harmless before the library acts on it: it keeps
 * limits in memory for as long as a header says, and reads an answer however long it is.
 */
import { DefaultRestOptions, type ResponseLike } from 'discord.js';
import { readJson, textBound } from '#channel-kit/bounded-json.ts';
import { askedWaitMs, clampRemote, longestWaitMs } from '#channel-kit/remote-number.ts';

type MakeRequest = typeof DefaultRestOptions.makeRequest;
type RequestOptions = Parameters<MakeRequest>[1];

/** Discord asks for a longer wait than is kept in memory; shaped like the library's own fault. */
class LongRateLimit extends Error {
  /** As Discord says, ms. */
  readonly retryAfter: number;
  readonly timeToReset: number;

  constructor(retryAfter: number) {
    super('Discord asks for a long wait');
    this.retryAfter = retryAfter;
    this.timeToReset = retryAfter;
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

/** Makes one request. Throws what the library's own throws, `LongRateLimit`, and an Error for an endless answer. */
export const makeRequest: MakeRequest = async (url, init) => {
  const response = await DefaultRestOptions.makeRequest(url, await withBytes(init));
  const { headers, status, statusText, ok } = response;
  const asked = askedWaitMs(headers.get('retry-after'), 1000) ?? 0;
  if (status === 429 && asked > longestWaitMs) {
    await readBody(response);
    throw new LongRateLimit(asked);
  }
  clampHeaders(headers);
  const once = new BodyReader(response);
  return {
    ...{ headers, status, statusText, ok, body: null },
    get bodyUsed() {
      return once.isUsed;
    },
    arrayBuffer: async () => Uint8Array.from(await once.read()).buffer,
    text: async () => (await once.read()).toString('utf8'),
    json: () => once.readJson(),
  };
};

/**
 * Writes a form out. Signal's HTTP client is a newer version of the library's, and once it is loaded all requests of
 * both go its way: it refuses the other's forms.
 */
async function withBytes(init: RequestOptions): Promise<RequestOptions> {
  if (!(init.body instanceof FormData)) return init;
  const form = new Response(init.body);
  const type = form.headers.get('content-type') ?? '';
  const body = new Uint8Array(await form.arrayBuffer());
  return { ...init, body, headers: { ...(init.headers as Record<string, string>), 'content-type': type } };
}

class BodyReader {
  readonly #response: ResponseLike;
  isUsed = false;

  constructor(response: ResponseLike) {
    this.#response = response;
  }

  read(): Promise<Buffer> {
    this.isUsed = true;
    return readBody(this.#response);
  }

  readJson(): Promise<unknown> {
    this.isUsed = true;
    return readJson(chunksOf(this.#response));
  }
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

/** Reads what is no JSON: a proxy's page, or what is thrown away. */
async function readBody(response: ResponseLike): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunksOf(response)) {
    length += chunk.length;
    if (length > textBound.bytes) throw new Error('Discord’s answer does not end');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
