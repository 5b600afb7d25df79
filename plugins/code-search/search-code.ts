/**
 * Asks a Sourcegraph server through its stream API (https://sourcegraph.com/docs/api/stream-api), and stops as soon as
 * enough is found. Redirects aren't followed: they would decide who gets the question.
 */
import { request } from 'undici';
import { z } from 'zod';
import { ParleyError } from '#contracts/errors.ts';
import { readEvents } from './event-stream.ts';
import { linesOf, onOneLine } from './match-lines.ts';

type Question = {
  readonly query: string;
  /** How many lines to find. */
  readonly count: number;
  /** Ends the call. */
  readonly signal: AbortSignal;
  /** Ends the search; what has been found counts. */
  readonly until: AbortSignal;
};

type SearchResult = {
  readonly lines: readonly string[];
  /** Parley's own remark on the search; absent if it was complete. */
  readonly note?: string;
};

const maxBytes = 8 * 1024 * 1024;

/** Throws ParleyError `tool_failed` with a sentence that says what to do, if nothing is found because of a failure. */
export async function searchCode(baseUrl: string, question: Question): Promise<SearchResult> {
  const host = new URL(baseUrl).host;
  const search = new Search(question.count);
  const asked = new URLSearchParams({ q: question.query, v: 'V3', display: String(question.count) });
  const url = `${baseUrl.replace(/\/+$/, '')}/.api/search/stream?${asked}`;
  try {
    const { statusCode, headers, body } = await request(url, {
      headers: { accept: 'text/event-stream', 'user-agent': 'Parley' },
      signal: AbortSignal.any([question.signal, question.until]),
    });
    // Dropped unread: whatever a refusal says, the sentence is ours.
    const refusal = refusalSentence(host, {
      status: statusCode,
      type: String(headers['content-type'] ?? ''),
    });
    if (refusal !== undefined) {
      body.on('error', () => undefined).destroy();
      throw problem(refusal);
    }
    // Leaving the loop ends the connection, and with it the search.
    for await (const event of readEvents(upTo(body, maxBytes))) if (search.take(event)) break;
  } catch (error) {
    question.signal.throwIfAborted();
    if (error instanceof ParleyError) throw error;
    if (search.lines.length === 0) throw networkProblem(host, error, question.until);
  }
  return search.found();
}

/** The results of a search so far. */
class Search {
  readonly lines: string[] = [];
  readonly #count: number;
  #isDone = false;
  #leftOut = 0;
  /** The server's own words: why it couldn't search everything. */
  readonly #remarks = new Set<string>();

  constructor(count: number) {
    this.#count = count;
  }

  /** Reads an event. Returns true if there is nothing to wait for. */
  take({ name, data }: { readonly name: string; readonly data?: string }): boolean {
    if (name === 'done') this.#isDone = true;
    if (name === 'matches' && data === undefined) this.#leftOut += 1;
    const content = data === undefined ? undefined : parse(data);
    if (name === 'matches')
      for (const line of linesOf(content)) if (this.lines.length < this.#count) this.lines.push(line);
    if (name === 'progress') this.#remark(progress.safeParse(content).data?.skipped ?? []);
    if (name === 'alert') this.#remark([{ severity: 'warn', ...alert.safeParse(content).data }]);
    if (name === 'error')
      this.#remark([{ severity: 'error', title: failure.safeParse(content).data?.message }]);
    return this.#isDone || this.lines.length >= this.#count;
  }

  #remark(skipped: readonly SkipReason[]): void {
    for (const { severity, title = '', description } of skipped.slice(0, maxRemarks))
      if (severity !== 'info' && this.#remarks.size < maxRemarks)
        this.#remarks.add(onOneLine([title, description ?? ''].filter((each) => each !== '').join(': ')));
  }

  found(): SearchResult {
    const remarks = [...this.#remarks].map((remark) => `(the server says: ${remark})`);
    const notes = [
      ...(this.lines.length === 0 ? ['No matches.'] : []),
      ...(this.lines.length >= this.#count
        ? ['There may be more matches; narrow the query to see others.']
        : []),
      ...(this.#leftOut > 0 ? ['Some matches were left out because of their length.'] : []),
      ...(this.#isDone || this.lines.length >= this.#count
        ? []
        : ['The search broke off; there may be more.']),
    ];
    const note = notes.join(' ');
    return { lines: [...this.lines, ...remarks], ...(note !== '' && { note }) };
  }
}

const maxRemarks = 5;

type SkipReason = {
  readonly severity?: string | undefined;
  readonly title?: string | undefined;
  readonly description?: string | null | undefined;
};

const text = z.string().max(10_000).optional().catch(undefined);
const alert = z.object({ title: text, description: text });
const failure = z.object({ message: text });
const progress = z.object({
  skipped: z
    .array(z.object({ severity: text, title: text }))
    .max(1000)
    .catch([]),
});

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    // An event that can't be read costs itself.
    return undefined;
  }
}

async function* upTo(chunks: AsyncIterable<Uint8Array>, most: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > most) return;
    yield chunk;
  }
}

/** Says why an answer has no matches to read; undefined if it may have some. */
function refusalSentence(
  host: string,
  { status, type }: { readonly status: number; readonly type: string },
): string | undefined {
  if (status >= 300 && status < 400)
    return `${host} redirects, which isn't followed. The owner should set plugins.code_search.baseUrl to where it leads.`;
  if (status === 401 || status === 403)
    return `${host} refuses to answer without an access token (status ${status}).`;
  if (status === 429) return `${host} answers no more questions for now: too many at once (status 429).`;
  if (status === 404)
    return `${host} isn't a Sourcegraph server (status 404). The owner should check plugins.code_search.baseUrl.`;
  if (status !== 200) return `${host} failed with status ${status}.`;
  return type.startsWith('text/event-stream') ? undefined : `${host} sent something else than matches.`;
}

function networkProblem(host: string, error: unknown, until: AbortSignal): ParleyError {
  if (until.aborted) return problem(`${host} took too long to answer.`, error);
  const code = error instanceof Error && 'code' in error ? ` (${error.code})` : '';
  return problem(`${host} can't be reached, or broke the connection off${code}.`, error);
}

function problem(message: string, cause?: unknown): ParleyError {
  return new ParleyError('tool_failed', message, { cause });
}
