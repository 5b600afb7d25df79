/**
 * Makes a stream of events out of whatever a server answers a streamed request with, before an SDK reads it: any line
 * ends, events without a name, comments and other noise, an end without an empty line, JSON without events around it.
 * Everything else stays unchanged.
 */

/** Chunk that stands for `[DONE]`, which the SDKs don't pass on: the server says that its answer is complete. */
const doneChunk = '{"choices":[],"isDone":true}';

/**
 * Where one chunk follows another without the empty line that ends an event: GLM and Kimi send calls like this
 * (eventsource-parser 31, openai-python 663, 9router 3492). It matches nothing inside JSON, where a quote after `}{`
 * ends a text and no letter comes after it.
 */
const nextJson = /(?<=\})\s*(?:data:\s*)?(?=\{"\w|\[DONE\]$)/;

/** Returns a `fetch` with tidy answers to streamed requests. */
export function withTidyStreams(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const answer = await fetch(input, init);
    const isStreamed = typeof init?.body === 'string' && /[{,]"stream":true[,}]/.test(init.body);
    const type = answer.headers.get('content-type') ?? '';
    return isStreamed && answer.ok && !type.startsWith('text/html') ? tidied(answer) : answer;
  };
}

function tidied({ ok, status, statusText, url, redirected, headers: given, body: wire }: Response): Response {
  const headers = new Headers(given);
  headers.set('content-type', 'text/event-stream');
  const body = { [Symbol.asyncIterator]: () => tidyEvents(wire ?? []) };
  const answer = { ok, status, statusText, url, redirected, headers, body };
  const text = async () => {
    let read = '';
    for await (const piece of body) read += Buffer.from(piece).toString();
    return read;
  };
  return { ...answer, text, json: async () => JSON.parse(await text()) } as unknown as Response;
}

async function* tidyEvents(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const events = new EventLines();
  for await (const piece of pieces) {
    const tidy = events.read(decoder.decode(piece, { stream: true }));
    if (tidy !== '') yield encoder.encode(tidy);
  }
  const rest = events.read(decoder.decode()) + events.end();
  if (rest !== '') yield encoder.encode(rest);
}

/** Reads lines as events. A body that begins like JSON is one event. */
class EventLines {
  #kind: 'unknown' | 'events' | 'body' = 'unknown';
  #rest = '';
  #name = '';
  #data: string[] = [];

  read(text: string): string {
    if (text === '') return '';
    this.#rest += text;
    if (this.#kind === 'unknown') {
      const begun = this.#rest.trimStart();
      if (begun === '') return '';
      this.#kind = /^[{[]/.test(begun) ? 'body' : 'events';
    }
    return this.#kind === 'body' ? '' : this.#lines(false);
  }

  end(): string {
    if (this.#kind === 'body') return eventsOf('', this.#rest.trim());
    return this.#lines(true) + this.#event();
  }

  #lines(isLast: boolean): string {
    // The other half of a line's end may be on its way.
    const held = !isLast && this.#rest.endsWith('\r') ? '\r' : '';
    const lines = this.#rest.slice(0, this.#rest.length - held.length).split(/\r\n|\n|\r/);
    this.#rest = isLast ? '' : (lines.pop() ?? '') + held;
    return lines.map((line) => this.#line(line)).join('');
  }

  #line(line: string): string {
    if (line === '') return this.#event();
    const [, field = '', value = ''] = /^([^:]*):? ?([\s\S]*)$/.exec(line) ?? [];
    if (field === 'event') this.#name = value;
    if (field === 'data') this.#data.push(value);
    return '';
  }

  #event(): string {
    const [name, data] = [this.#name, this.#data.join('\n').trim()];
    this.#name = '';
    this.#data = [];
    return eventsOf(name, data);
  }
}

function eventsOf(name: string, data: string): string {
  return data
    .split(nextJson)
    .map((json) => eventOf(name, json))
    .join('');
}

function eventOf(name: string, data: string): string {
  if (data === '[DONE]') return `data: ${doneChunk}\n\ndata: [DONE]\n\n`;
  const json = data.trim();
  // Only an error may be anything but JSON: keep-alive words aren't a part of the answer.
  if (name === 'error')
    return `event: error\ndata: ${json.startsWith('{') ? oneLine(json) : JSON.stringify({ error: { message: json } })}\n\n`;
  if (!/^[{[]/.test(json)) return '';
  return `event: ${name === '' || name === 'ping' ? 'message' : name}\ndata: ${oneLine(withoutNullChoices(json))}\n\n`;
}

/** Removes choices that are null: OpenAI's SDK throws at one. */
function withoutNullChoices(json: string): string {
  if (!json.includes('"choices"') || !/[[,]\s*null\s*[\],]/.test(json)) return json;
  try {
    const chunk: unknown = JSON.parse(json);
    const choices = (chunk as { readonly choices?: unknown } | null)?.choices;
    if (!Array.isArray(choices) || !choices.includes(null)) return json;
    return JSON.stringify({ ...(chunk as object), choices: choices.filter((choice) => choice !== null) });
  } catch {
    // The SDK reports it.
    return json;
  }
}

/** Line ends can only stand between the values of JSON. */
function oneLine(json: string): string {
  return json.replace(/[\r\n]+/g, ' ');
}
