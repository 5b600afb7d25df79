/**
 * Reads what a server said when it refused a request, in whatever form: the API's own error object, one wrapped by a
 * router or a proxy, a list, a bare text, JSON inside a text, a page. Pure. Only fields in which servers speak
 * themselves are read, never those that repeat the request (`input`, `flagged_input`, `failed_generation`).
 */
import { jsonProblem } from '#channel-kit/json-guard.ts';

/** A refusal as its server worded it. Lower case, bounded. */
export type Refusal = {
  /** HTTP status, or the one that the body names when there was none or it said 200. */
  readonly status: number | undefined;
  /** The request was answered with this refusal, instead of a stream that broke off later: it costs nothing. */
  readonly isAnswer: boolean;
  /** Codes, types and reasons from the body's own fields. */
  readonly codes: readonly string[];
  /** Codes from JSON that was inside a text, which may quote the request. */
  readonly quotedCodes: readonly string[];
  /** Everything that the server said in words, the innermost first. */
  readonly words: string;
  /** The same as the server wrote it, for people. */
  readonly said: string;
  /** The field of the request that the server names. */
  readonly param: string | undefined;
  /** The answer is a page for people, from something other than the API. */
  readonly isPage: boolean;
  readonly headers: Headers | undefined;
  /** Times that the body names in fields: seconds to wait, or the moment of a reset. */
  readonly times: readonly string[];
};

type Source = {
  readonly status?: number | undefined;
  /** The raw answer, or an error object that was inside a stream. */
  readonly body: unknown;
  readonly headers?: Headers | undefined;
  readonly isAnswer: boolean;
};

/** How much of an answer is read, UTF-16 units. */
export const longestRefusal = 64 * 1024;
const longestText = 1_000;
const longestWords = 3_000;
const longestCode = 100;
const deepest = 8;
const maxTexts = 12;
const maxCodes = 24;
const maxEntries = 6;

export function readRefusal({ status, body, headers, isAnswer }: Source): Refusal {
  const found = new Findings();
  if (typeof body === 'string') found.addAnswer(body.slice(0, longestRefusal));
  else if (jsonProblem(body, { depth: 32, values: 5_000 }) === undefined) found.add(body, 0);
  const named = found.statuses.find((each) => each >= 400 && each < 600);
  const isTelling = status !== undefined && status >= 300;
  const said = found.said();
  return {
    status: isTelling ? status : (named ?? status),
    isAnswer,
    codes: found.codes,
    quotedCodes: found.quotedCodes,
    words: said.toLowerCase().replaceAll('’', "'"),
    said,
    param: found.param,
    isPage: found.isPage,
    headers,
    times: found.times,
  };
}

const textFields: ReadonlySet<string> = new Set([
  'message',
  'msg',
  'error_msg',
  'errormsg',
  'errmsg',
  'error_message',
  'errormessage',
  'error_description',
  'status_msg',
  'statustext',
  'detail',
  'description',
  'title',
  'raw',
  'error',
  'errors',
  'details',
  'body',
  'cause',
  'quotaid',
]);
/** Counts that llama.cpp puts beside its words. */
const countFields: ReadonlySet<string> = new Set(['n_ctx', 'n_prompt_tokens']);
const codeFields: ReadonlySet<string> = new Set([
  'code',
  'type',
  'status',
  'reason',
  'reasons',
  'error_code',
  'errorcode',
  'errcode',
  'err_code',
  'error_type',
  'status_code',
  'statuscode',
  'http_code',
  'httpcode',
  '__type',
  'name',
  'error',
  'blockreason',
]);
const nestedFields: ReadonlySet<string> = new Set([
  'error',
  'errors',
  'err',
  'metadata',
  'detail',
  'details',
  'innererror',
  'inner_error',
  'response',
  'raw',
  'body',
  'cause',
  'fault',
  'exception',
  'upstream_error',
  'promptfeedback',
  'violations',
  'headers',
]);
const timeFields: ReadonlySet<string> = new Set([
  'retry_after',
  'retryafter',
  'retrydelay',
  'retry_after_seconds',
  'resets_at',
  'reset_at',
  'resets_in_seconds',
  'retry-after',
  'x-ratelimit-reset',
]);
/** Texts of routers when the cause is elsewhere in the answer. */
const empty =
  /^(?:provider returned error|bad request|error|api_error|upstream error|internal server error)\.?$/i;

/** Collects what an answer says, breadth before size. */
class Findings {
  readonly codes: string[] = [];
  readonly quotedCodes: string[] = [];
  readonly statuses: number[] = [];
  readonly times: string[] = [];
  readonly #texts: { readonly text: string; readonly depth: number }[] = [];
  param: string | undefined;
  isPage = false;
  #isQuoted = false;

  addAnswer(answer: string): void {
    const text = answer.replace(/^\uFEFF/, '').trim();
    if (text.startsWith('<')) {
      this.#addPage(text);
      return;
    }
    // An error that a server sends as an event although the call never began.
    const event = /^(?:event|data|id|retry):/.test(text) ? /^data:\s*(.+)$/m.exec(text)?.[1] : undefined;
    const json = parsed(event ?? text);
    if (json !== undefined) this.add(json, 0);
    else this.#addText(event ?? text, 0);
  }

  add(value: unknown, depth: number): void {
    if (depth > deepest) return;
    if (typeof value === 'string') {
      this.#addText(value, depth);
      return;
    }
    if (Array.isArray(value)) {
      for (const entry of value.slice(0, maxEntries)) this.add(entry, depth + 1);
      return;
    }
    if (typeof value !== 'object' || value === null) return;
    for (const [field, inner] of Object.entries(value).slice(0, 60)) this.#addField(field, inner, depth);
  }

  #addField(given: string, value: unknown, depth: number): void {
    const field = given.toLowerCase();
    const isPlain = typeof value === 'string' || typeof value === 'number';
    if (field === 'param' && typeof value === 'string') this.param ??= value.slice(0, 200);
    if (field === 'flagged_input') this.#addCode('flagged_input');
    if (isPlain && codeFields.has(field)) this.#addCode(value);
    if (field === 'reasons' && Array.isArray(value))
      for (const each of value.slice(0, 4)) this.#addCode(each);
    if (isPlain && timeFields.has(field) && this.times.length < 4)
      this.times.push(String(value).slice(0, 100));
    if (typeof value === 'string' && textFields.has(field)) this.#addText(value, depth);
    if (typeof value === 'number' && countFields.has(field)) this.#addText(`${field}: ${value}`, 0);
    if (field === 'base_resp') this.#addBaseResponse(value, depth);
    if (typeof value === 'object' && nestedFields.has(field)) this.add(value, depth + 1);
    // A message is an object in some servers' answers.
    if (typeof value === 'object' && field === 'message') this.add(value, depth + 1);
  }

  /** MiniMax's own codes, which mean something else to others. */
  #addBaseResponse(value: unknown, depth: number): void {
    const { status_code: code, status_msg: text } = Object(value) as Readonly<Record<string, unknown>>;
    if (typeof code === 'number') this.#addCode(`minimax:${code}`);
    if (typeof text === 'string') this.#addText(text, depth + 1);
  }

  #addCode(value: unknown): void {
    if (typeof value !== 'string' && typeof value !== 'number') return;
    const code = String(value).toLowerCase();
    if (code === '' || code.length > longestCode) return;
    const list = this.#isQuoted ? this.quotedCodes : this.codes;
    if (list.length < maxCodes && !list.includes(code)) list.push(code);
    const status = Number(code);
    if (Number.isInteger(status)) this.statuses.push(status);
  }

  #addText(given: string, depth: number): void {
    const text = given.trim();
    if (text === '' || this.#texts.length >= maxTexts) return;
    if (/^<(?:!doctype|html|head|body)\b/i.test(text)) {
      this.#addPage(text);
      return;
    }
    const inner = this.#texts.some((each) => each.text === text) ? undefined : innerJson(text);
    if (inner !== undefined && depth < deepest) {
      const before = this.#isQuoted;
      this.#isQuoted = true;
      this.add(inner.value, depth + 1);
      this.#isQuoted = before;
      if (inner.around === '') return;
      this.#texts.push({ text: inner.around.slice(0, longestText), depth });
      return;
    }
    this.#texts.push({ text: text.slice(0, longestText), depth });
  }

  #addPage(text: string): void {
    this.isPage = true;
    const title = /<title[^>]{0,100}>([^<]{0,200})/i.exec(text)?.[1] ?? '';
    const heading = /<h1[^>]{0,100}>([^<]{0,200})/i.exec(text)?.[1] ?? '';
    const words = [title, heading].map((each) => each.replace(/\s+/g, ' ').trim()).filter(Boolean);
    this.#texts.push({ text: [...new Set(words)].join(', ') || 'a page without a title', depth: 0 });
  }

  said(): string {
    const filled = this.#texts.filter(({ text }) => !empty.test(text));
    const shown = filled.length > 0 ? filled : this.#texts;
    const inner = shown.toSorted((one, other) => other.depth - one.depth).map(({ text }) => text);
    return [...new Set(inner)].join(' · ').replace(/\s+/g, ' ').slice(0, longestWords);
  }
}

/** Finds JSON inside a text, as of proxies that put an answer behind words of their own. */
function innerJson(text: string): { readonly value: unknown; readonly around: string } | undefined {
  const from = text.search(/[[{]/);
  if (from === -1) return undefined;
  const to = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']')) + 1;
  const value = parsed(text.slice(from, to));
  if (typeof value !== 'object' || value === null) return undefined;
  return { value, around: `${text.slice(0, from)} ${text.slice(to)}`.trim() };
}

/** Parses JSON of a plausible shape; undefined for anything else. */
function parsed(text: string): unknown {
  if (!/^[[{"]/.test(text)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return jsonProblem(value, { depth: 32, values: 5_000 }) === undefined ? value : undefined;
  } catch {
    return undefined;
  }
}
