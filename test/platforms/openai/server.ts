/**
 * A local Chat Completions server for the real SDK, strict about conversations. Its flavours differ as the servers that
 * people use do: in usage, tool deltas, reasoning and errors. Scripts are those of the Anthropic server.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { asObject, type Json } from '../anthropic/refusal.ts';
import type { Reply, Turn } from '../anthropic/turn.ts';
import { BadRequest, checkRequest, checkSignatures } from './check-request.ts';
import { type AnswerFacts, type Flavour, type Step, stepsOf, wholeOf } from './chunks.ts';

export type OpenAiRequestEntry = {
  readonly body: Json;
  /** The index of the accepted key that was used; -1: none of them. */
  readonly keyIndex: number;
  status: number;
  refusal?: string;
};

export type OpenAiScript = readonly Reply[] | ((body: Json, count: number) => Reply | Promise<Reply>);

export type OpenAiServer = {
  /** For the SDK's `baseURL`. */
  readonly url: string;
  readonly requests: readonly OpenAiRequestEntry[];
  /** Sets the next replies. Without a script the model repeats the person's words. */
  script(script: OpenAiScript): void;
  close(): Promise<void>;
};

export type OpenAiServerOptions = {
  /** Default: openai. */
  readonly flavour?: Flavour;
  /** Accepted API keys; default: `test-key`. If empty, no key is required. */
  readonly keys?: readonly string[];
  /** Parameters that it rejects as unknown. */
  readonly refusedParams?: readonly string[];
  /** Why requests may break the server's rules here. If absent, `close` rejects when one did. */
  readonly mayRefuse?: string;
};

export async function startOpenAiServer(options: OpenAiServerOptions = {}): Promise<OpenAiServer> {
  const { flavour = 'openai', keys = ['test-key'], refusedParams = [], mayRefuse } = options;
  const broken: string[] = [];
  const requests: OpenAiRequestEntry[] = [];
  let count = 0;
  let script: OpenAiScript = repeatAfterMe;
  let replies = 0;
  const newId = () => {
    count += 1;
    return `call_${port}_${count}`;
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const raw = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    const key = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    const entry: OpenAiRequestEntry = { body: raw, keyIndex: keys.indexOf(key), status: 0 };
    requests.push(entry);
    try {
      if (keys.length > 0 && entry.keyIndex === -1) throw wrongKey(key, flavour);
      const body = strictly(() => checkRequest(raw, refusedParams));
      if (flavour === 'gemini') strictly(() => checkSignatures(body));
      const reply = await strictly(() => nextReply(body));
      entry.status = 'status' in reply ? reply.status : 200;
      await play(reply, { body, response, flavour, newId });
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const bad = error instanceof BadRequest ? error : new BadRequest(error.message);
      entry.status = bad.status;
      entry.refusal = bad.message;
      sendError(response, flavour, bad);
    }
  }

  function nextReply(body: Json): Reply | Promise<Reply> {
    replies += 1;
    const reply = typeof script === 'function' ? script(body, replies) : script[replies - 1];
    if (!reply) throw new BadRequest(`the script has no reply ${replies}`);
    return reply;
  }

  /**
   * Records every refusal as a mistake, Parley's or that of a script with too few replies, except for `refusedParams`.
   */
  function strictly<T>(check: () => T): T {
    try {
      return check();
    } catch (error) {
      const isToldTo = error instanceof BadRequest && refusedParams.includes(error.param ?? '');
      if (error instanceof Error && !isToldTo) broken.push(error.message);
      throw error;
    }
  }

  const listModels = (request: IncomingMessage, response: ServerResponse): void => {
    const key = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    if (keys.length > 0 && !keys.includes(key)) {
      sendError(response, flavour, wrongKey(key, flavour));
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ object: 'list', data: [{ id: 'gpt-6-luna', object: 'model' }] }));
  };

  const server = createServer((request, response) => {
    if (request.url === '/v1/models') return listModels(request, response);
    if (request.url?.split('?')[0] !== '/v1/chat/completions') return void response.writeHead(404).end();
    response.on('error', () => {});
    answer(request, response).catch((error) => response.destroy(error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    script: (next) => {
      script = next;
      replies = 0;
    },
    close: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      if (broken.length > 0 && mayRefuse === undefined)
        throw new Error(`the model server refused ${broken.length} requests, the first: ${broken[0]}`);
    },
  };
}

type Stage = {
  readonly body: Json;
  readonly response: ServerResponse;
  readonly flavour: Flavour;
  readonly newId: () => string;
};

async function play(reply: Reply, { body, response, flavour, newId }: Stage): Promise<void> {
  if ('hang' in reply) return;
  if ('disconnect' in reply) return void response.destroy();
  if ('status' in reply) {
    const { status, message = 'scripted', errorCode, retryAfter } = reply;
    if (retryAfter !== undefined) response.setHeader('retry-after', String(retryAfter));
    const code = errorCode === undefined ? {} : { code: errorCode };
    return sendError(response, flavour, new BadRequest(message, { status, ...code }));
  }
  if ('garbage' in reply) {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    return void response.end(reply.garbage);
  }
  if (reply.hold !== undefined && reply.hold.afterChunks === undefined) await standAt(reply.hold.gate);
  const isUsageAsked = asObject(body.stream_options ?? {}, 'stream_options').include_usage === true;
  const facts = { model: String(body.model), newId, counted: countedOf(reply, body), isUsageAsked };
  if (body.stream !== true) {
    response.writeHead(200, { 'content-type': 'application/json' });
    return void response.end(JSON.stringify(wholeOf(reply, flavour, facts)));
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  await playSteps(reply, stepsOf(reply, flavour, facts), { response, flavour });
}

async function playSteps(
  reply: Turn,
  steps: readonly Step[],
  { response, flavour }: Pick<Stage, 'response' | 'flavour'>,
): Promise<void> {
  let chunks = 0;
  for (const step of steps) {
    if (reply.hold?.afterChunks === chunks) await standAt(reply.hold.gate);
    if (stopAfter(reply) === chunks) return goWrong(reply, { response, flavour });
    if (step.isChunk) chunks += 1;
    if (response.destroyed) return;
    response.write(step.text);
  }
  response.end();
}

function stopAfter(reply: Reply): number | undefined {
  if ('cutAfter' in reply) return reply.cutAfter;
  if ('endAfter' in reply) return reply.endAfter;
  if ('silentAfter' in reply) return reply.silentAfter;
  return 'midStreamError' in reply ? (reply.afterChunks ?? 0) : undefined;
}

function goWrong(reply: Reply, { response, flavour }: Pick<Stage, 'response' | 'flavour'>): void {
  if ('silentAfter' in reply) return;
  if ('endAfter' in reply) return void response.end();
  if ('midStreamError' in reply) {
    const code = flavour === 'openrouter' ? 502 : 'server_error';
    const error = { error: { code, message: reply.midStreamError } };
    return void response.end(`data: ${JSON.stringify(error)}\n\n`);
  }
  // What was written must be sent before the cut, or the client would see nothing at all.
  response.write(':\n', () => setImmediate(() => response.destroy()));
}

function sendError(response: ServerResponse, flavour: Flavour, bad: BadRequest): void {
  const { status, message, code, param } = bad;
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  const error = flavour === 'openrouter' ? { code: status, message } : { message, type, param, code };
  const answer = flavour === 'gemini' ? [{ error: { code: status, message } }] : { error };
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
}

/** Returns the refusal of a key. Gemini's can only be recognized by its text. */
function wrongKey(key: string, flavour: Flavour): BadRequest {
  if (flavour === 'gemini') return new BadRequest('API key not valid. Please pass a valid API key.');
  return new BadRequest(`Incorrect API key provided: ${key}`, { status: 401, code: 'invalid_api_key' });
}

function countedOf({ usage, text, chunks }: Turn, body: Json): AnswerFacts['counted'] {
  const cached = usage?.cache_read_input_tokens ?? 0;
  const prompt = (usage?.input_tokens ?? Math.ceil(JSON.stringify(body.messages).length / 4)) + cached;
  const answer = text ?? chunks?.join('') ?? '';
  return { prompt, cached, completion: usage?.output_tokens ?? Math.ceil(answer.length / 4) };
}

async function standAt(gate: { arrive(): void; readonly opened: Promise<void> }): Promise<void> {
  gate.arrive();
  await gate.opened;
}

const repeatAfterMe: OpenAiScript = (body) => ({ text: `You said: ${lastSaid(body)}` });

/** Returns the person's last message. */
export function lastSaid(body: Json): string {
  const messages = Array.isArray(body.messages) ? body.messages : [];
  const { content } = messages.findLast(({ role }) => role === 'user') ?? {};
  return typeof content === 'string' ? content : JSON.stringify(content ?? '');
}
