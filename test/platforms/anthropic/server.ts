/**
 * A local server that implements Anthropic's Messages API strictly enough for the real SDK, and refuses what the
 * platform would refuse. Tests script its answers and read its journal.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { checkRequest } from './check-request.ts';
import { createJournal, type Journal, type JournalEntry } from './journal.ts';
import { rulesOf } from './model-rules.ts';
import { play, type Stage, sendError } from './play.ts';
import { createPromptCache, type PromptUsage } from './prompt-cache.ts';
import { Refusal } from './refusal.ts';
import { answerOf } from './stream-events.ts';
import type { Reply, Script } from './turn.ts';
import { lastUserText, type WireBody } from './wire.ts';

export type AnthropicServer = {
  /** For the SDK's `baseURL`. */
  readonly url: string;
  /** The variables by which Parley finds it. */
  readonly environment: Readonly<Record<string, string>>;
  /** All requests to the Messages API in order of arrival, including refused ones. */
  readonly requests: readonly JournalEntry[];
  /** The keys used by requests for the list of models, which are free. */
  readonly lists: readonly string[];
  /** How many connections clients have opened. */
  connectionCount(): number;
  /** Sets the next replies. Without a script the model repeats the person's words. */
  script(script: Script): void;
  /**
   * Resolves with the n-th request (from 1), or the first that matches, past ones included. Rejects at the deadline.
   */
  waitForRequest: Journal['waitForRequest'];
  close(): Promise<void>;
};

export type AnthropicServerOptions = {
  /** Accepted API keys. Default: `test-key`. */
  readonly keys?: readonly string[];
  /** Makes the window smaller than the model's own, to provoke "prompt is too long". */
  readonly contextTokens?: number;
  /** How many of the latest requests are kept; if absent, all. */
  readonly journalLimit?: number;
  /** Why requests may break the server's rules here. If absent, `close` rejects when one did. */
  readonly mayRefuse?: string;
};

const VERSIONS = ['2023-06-01', '2026-10-21'];
const MAX_BODY_BYTES = 32 * 1024 * 1024;

export async function startAnthropicServer(options: AnthropicServerOptions = {}): Promise<AnthropicServer> {
  const journal = createJournal(options.journalLimit);
  const cache = createPromptCache();
  const keys = options.keys ?? ['test-key'];
  const newId = createIds();
  const broken: string[] = [];
  let nextReply = replier(repeatAfterMe);
  let connections = 0;
  const lists: string[] = [];
  const answered = new Set<string | null>([null]);

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = newId('req');
    const raw = await readBody(request);
    const entry = journal.add(request, parse(raw), keys);
    const stage = { response, requestId, isStreaming: false, answer: noAnswer };
    try {
      checkHead(request, entry);
      const body = strictly(() => checkRequest(entry.body, String(request.headers['anthropic-beta'] ?? '')));
      strictly(() => checkDiagnostics(body, answered));
      const prompt = countPrompt(body);
      entry.prompt = prompt;
      const reply = await strictly(() => nextReply(body));
      entry.status = 'status' in reply ? reply.status : 200;
      const turns: Stage['answer'] = (turn) => {
        const made = answerOf(turn, { body, prompt, newId });
        answered.add(made.id);
        return made;
      };
      await play(reply, { ...stage, isStreaming: body.stream === true, answer: turns });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      entry.status = error.status;
      entry.refusal = error.message;
      sendError({ status: error.status, errorType: error.type, message: error.message }, stage);
    }
  }

  /** Records every unrequested refusal as a mistake: Parley's, or that of a script with too few replies. */
  function strictly<T>(check: () => T): T {
    try {
      return check();
    } catch (error) {
      if (error instanceof Refusal) broken.push(error.message);
      throw error;
    }
  }

  function countPrompt(body: WireBody): PromptUsage {
    const prompt = cache.count(body);
    const tokens = prompt.input_tokens + prompt.cache_read_input_tokens + prompt.cache_creation_input_tokens;
    const window = options.contextTokens ?? rulesOf(body.model).contextTokens;
    if (tokens > window) throw new Refusal(`prompt is too long: ${tokens} tokens > ${window} maximum`);
    return prompt;
  }

  const server = createServer((request, response) => {
    if (request.method === 'GET' && request.url?.split('?')[0] === '/v1/models') {
      lists.push(String(request.headers['x-api-key']));
      return listModels(request, response, keys);
    }
    if (request.method !== 'POST' || request.url?.split('?')[0] !== '/v1/messages') {
      response.writeHead(404).end();
      return;
    }
    response.on('error', () => {});
    answer(request, response).catch((error) => response.destroy(error));
  });
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    environment: { ANTHROPIC_API_KEY: keys[0] ?? '', ANTHROPIC_BASE_URL: url },
    requests: journal.entries,
    lists,
    connectionCount: () => connections,
    script: (script) => {
      nextReply = replier(script);
    },
    waitForRequest: journal.waitForRequest,
    close: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      if (broken.length > 0 && options.mayRefuse === undefined)
        throw new Error(`the model server refused ${broken.length} requests, the first: ${broken[0]}`);
    },
  };
}

/** Answers as the model does without a script. */
export const repeatAfterMe: Script = (body) => ({ text: `You said: ${lastUserText(body)}` });

function replier(script: Script): (body: WireBody) => Reply | Promise<Reply> {
  let count = 0;
  return (body) => {
    count += 1;
    if (typeof script === 'function') return script(body, count);
    const reply = script[count - 1];
    if (reply === undefined)
      throw new Refusal(`the script has ${script.length} replies, this is request ${count}`);
    return reply;
  };
}

function listModels(request: IncomingMessage, response: ServerResponse, keys: readonly string[]): void {
  const isKnown = keys.includes(String(request.headers['x-api-key']));
  const refusal = { type: 'error', error: { type: 'authentication_error', message: 'invalid x-api-key' } };
  const list = { data: [{ type: 'model', id: 'claude-sonnet-5-5' }], has_more: true };
  response.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json' });
  response.end(JSON.stringify(isKnown ? list : refusal));
}

/** Stricter than the platform, which only says that it doesn't know the answer. */
function checkDiagnostics({ diagnostics }: WireBody, answered: ReadonlySet<string | null>): void {
  const { previous_message_id: previous = null } = diagnostics ?? {};
  if (!answered.has(previous)) throw new Refusal(`diagnostics.previous_message_id: ${previous} is unknown`);
}

function checkHead(request: IncomingMessage, entry: JournalEntry): void {
  if (entry.keyIndex === -1) {
    throw new Refusal('invalid x-api-key', { status: 401, type: 'authentication_error' });
  }
  const version = request.headers['anthropic-version'];
  if (version === undefined) throw new Refusal('anthropic-version: header is required');
  if (!VERSIONS.includes(String(version))) {
    throw new Refusal(`anthropic-version: "${version}" is not a valid version`);
  }
  if (!String(request.headers['content-type'] ?? '').startsWith('application/json')) {
    throw new Refusal('content-type: must be application/json');
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new Error('the request is larger than 32 MB');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parse(raw: string): unknown {
  try {
    return JSON.parse(raw);
  } catch {
    return undefined;
  }
}

/** Creates ids that are also unique across servers, because a conversation may outlive one. */
function createIds(): (prefix: string) => string {
  const server = randomBytes(4).toString('hex');
  let count = 0;
  return (prefix) => {
    count += 1;
    return `${prefix}_${server}${String(count).padStart(6, '0')}`;
  };
}

function noAnswer(): never {
  throw new Error('a refused request has no answer');
}
