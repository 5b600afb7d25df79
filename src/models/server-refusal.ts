/**
 * Answers of a model's server that aren't answers of the model: refusals, pages, and errors inside a successful answer.
 * They are read here, before an SDK sees them, because the SDKs keep only the parts of a body that their own platform
 * sends.
 */
import { RedirectRefused } from '#channel-kit/redirects.ts';
import { longestRefusal } from './read-refusal.ts';

/** A refusal with its whole body. Its message is fixed: SDKs judge by the words of errors. */
export class ServerRefusal extends Error {
  readonly status: number;
  readonly headers: Headers | undefined;
  readonly body: unknown;
  /** The address that was asked, without its query. */
  readonly url: string;

  constructor(answer: Pick<ServerRefusal, 'status' | 'headers' | 'body' | 'url'>) {
    super('the server refused the request');
    this.status = answer.status;
    this.headers = answer.headers;
    this.body = answer.body;
    this.url = answer.url;
  }
}

/** Finds the refusal in an error of an SDK, which wraps it. */
export function refusalBehind(error: unknown): ServerRefusal | RedirectRefused | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth += 1)
    if (at instanceof ServerRefusal || at instanceof RedirectRefused) return at;
  return undefined;
}

/** Returns a `fetch` that throws a `ServerRefusal` for everything but an answer of the model. */
export function refusing(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    // A redirected call would carry key and conversation to another host.
    const answer = await fetch(input, { ...init, redirect: 'manual' });
    const url = String(input instanceof Request ? input.url : input).split('?')[0] ?? '';
    const { status, headers } = answer;
    const type = headers.get('content-type') ?? '';
    if (!answer.ok || type.startsWith('text/html'))
      throw new ServerRefusal({ status, headers, body: await startOf(answer), url });
    if (type.startsWith('text/event-stream') || type.includes('ndjson')) return answer;
    if (!type.includes('json')) return refusingPages(answer, url);
    const text = await answer.text();
    if (isRefusalText(text)) throw new ServerRefusal({ status, headers, body: text, url });
    return withBody(answer, restOf([Buffer.from(text)]));
  };
}

/** Throws if a chunk of a stream is an error that the SDK takes for a part of the answer. */
export function throwIfRefused(chunk: unknown): void {
  if (isRefusalBody(chunk)) throw new StreamRefusal(chunk);
}

/** An error inside a stream, in the shape in which the SDKs throw theirs. */
class StreamRefusal extends Error {
  readonly error: unknown;

  constructor(body: unknown) {
    super('the server broke the stream off with an error');
    this.error = body;
  }
}

/** How long a refusal's body may take, ms: its status says enough. */
const readingMs = 10_000;

/** Reads the beginning of a body, as far as it arrives. Never rejects. */
async function startOf({ body }: Response): Promise<string> {
  const read: Uint8Array[] = [];
  let length = 0;
  const pieces = body === null ? [] : (body as AsyncIterable<Uint8Array>);
  const reading = (async () => {
    for await (const piece of pieces) {
      read.push(piece);
      length += piece.length;
      // Leaving the loop ends the connection.
      if (length > longestRefusal) return;
    }
  })().catch(() => undefined);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, readingMs);
  });
  await Promise.race([reading, late]);
  clearTimeout(timer);
  return Buffer.concat(read).toString().slice(0, longestRefusal);
}

/** How far the beginning of a page is looked for behind blanks, bytes. */
const maxBeginning = 1_000;

/** Recognizes a page by its beginning, whatever its content type. */
async function refusingPages(answer: Response, url: string): Promise<Response> {
  const { status, headers, body } = answer;
  if (body === null) return answer;
  const pieces = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  let begun = '';
  let length = 0;
  while (begun === '' && length < maxBeginning) {
    const { done, value } = await pieces.next();
    if (done === true) break;
    first.push(value);
    length += value.length;
    begun = Buffer.concat(first).toString('utf8', 0, maxBeginning).trimStart();
  }
  const rest = restOf(first, pieces);
  if (!/^(?:\uFEFF)?<(?:!|html|head|body|\?xml)/i.test(begun)) return withBody(answer, rest);
  throw new ServerRefusal({ status, headers, url, body: await startOf(withBody(answer, rest)) });
}

async function* restOf(first: readonly Uint8Array[], pieces?: AsyncIterator<Uint8Array>) {
  yield* first;
  if (pieces !== undefined) yield* { [Symbol.asyncIterator]: () => pieces };
}

/** Returns as much of a `Response` as the SDKs use. */
function withBody(answer: Response, body: AsyncIterable<Uint8Array>): Response {
  const { ok, status, statusText, url, redirected, headers } = answer;
  const text = async () => {
    const read: Uint8Array[] = [];
    for await (const piece of body) read.push(piece);
    return Buffer.concat(read).toString();
  };
  const json = async () => JSON.parse(await text());
  return { ok, status, statusText, url, redirected, headers, body, text, json } as unknown as Response;
}

/** Longer texts are answers: an error needs fewer words. */
const longestInAnswer = 256 * 1024;

function isRefusalText(text: string): boolean {
  if (text.length > longestInAnswer) return false;
  try {
    return isRefusalBody(JSON.parse(text));
  } catch {
    return false;
  }
}

/** Says whether a value is an error instead of an answer or a part of one. */
function isRefusalBody(given: unknown): boolean {
  const value: unknown = Array.isArray(given) ? given[0] : given;
  if (typeof value !== 'object' || value === null) return false;
  const { choices, content, error, errors, object, type, base_resp: base, ...rest } = value as Fields;
  if ((Array.isArray(choices) && choices.some(isFilled)) || Array.isArray(content)) return false;
  if (object === 'error' || type === 'error') return true;
  if (isFilled(error) || isFilled(errors) || (isFilled(rest.detail) && choices === undefined)) return true;
  const baseCode = (base as Fields | null | undefined)?.status_code;
  if (typeof baseCode === 'number' && baseCode !== 0) return true;
  const isStreamEvent = typeof type === 'string' || choices !== undefined;
  return !isStreamEvent && isFilled(rest.code) && (isFilled(rest.msg) || isFilled(rest.message));
}

type Fields = Readonly<Record<string, unknown>>;

function isFilled(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== false && value !== 0;
}
