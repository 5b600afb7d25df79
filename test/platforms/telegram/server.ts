import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Door } from '../shared/door.ts';
import { Probes } from '../shared/probes.ts';
import { type Fault, type FaultMatch, Faults } from './faults.ts';
import { type Draft, methods, type Outcome, type Platform, type Typing } from './methods.ts';
import { type Params, readParams } from './params.ts';
import { People } from './people.ts';
import { TelegramLimiter, type TelegramRates } from './rates.ts';
import { ApiError, type Call, type StandingMessage, type TgUpdate, type TgUser } from './types.ts';
import { UpdateQueue } from './update-queue.ts';
import { World } from './world.ts';

export type TelegramServerOptions = {
  readonly token?: string;
  readonly bot?: Partial<TgUser>;
  /** The platform's clock; default: the real one. */
  readonly now?: () => number;
  /** Default: none. */
  readonly rates?: TelegramRates;
};

const sends = new Set([
  'sendMessage',
  'sendPhoto',
  'sendVideo',
  'sendAnimation',
  'sendAudio',
  'sendVoice',
  'sendDocument',
  'sendMediaGroup',
  'sendPoll',
  'editMessageText',
  'editMessageCaption',
  'deleteMessage',
  'setMessageReaction',
]);

/** Starts a Bot API server on its own loopback port. */
export async function startTelegramServer(options: TelegramServerOptions = {}): Promise<TelegramServer> {
  const server = new TelegramServer(options);
  await server.comeBack();
  return server;
}

/** The Bot API as a bot sees it, with the controls by which a test drives the other side. */
export class TelegramServer {
  readonly bot: TgUser;
  readonly world: World;
  readonly updates: UpdateQueue;
  /** What people do: `server.people.sends({ from, text })`. */
  readonly people: People;
  /** Every method call in order of arrival, including long polls. */
  readonly calls: Call[] = [];
  readonly typing: Typing[] = [];
  readonly drafts: Draft[] = [];
  readonly #faults = new Faults();
  readonly #limiter: TelegramLimiter | undefined;
  readonly #platform: Platform;
  readonly #probes = new Probes(() => {
    const last = this.calls
      .slice(-8)
      .map(({ method, status, description }) => `${method} ${status} ${description ?? ''}`);
    return `last calls: ${last.join('; ')}`;
  });
  readonly #door = new Door({
    onRequest: (request, response, body) => void this.#serve(request, response, body),
  });
  #token: string;
  #isTokenRevoked = false;

  constructor(options: TelegramServerOptions) {
    const now = options.now ?? Date.now;
    this.#limiter = options.rates && new TelegramLimiter(options.rates);
    this.#token = options.token ?? '7000001:AAparley-test-token-0123456789abcdef';
    const id = Number(this.#token.split(':')[0]);
    this.bot = { id, is_bot: true, first_name: 'Parley', username: 'ParleyTestBot', ...options.bot };
    this.world = new World(this.bot, now);
    this.updates = new UpdateQueue(now, 410_000_001);
    const visibleDrafts = new Map<number, Draft>();
    const onChange = () => this.#probes.changed();
    this.people = new People({
      world: this.world,
      queue: this.updates,
      now,
      visibleDrafts,
      onChange,
    });
    this.#platform = {
      world: this.world,
      now,
      drafts: this.drafts,
      typing: this.typing,
      visibleDrafts,
      answeredCallbacks: [],
      commands: [],
      webhookUrl: '',
      dropPending: () => this.updates.drop(),
    };
  }

  /** The token that is currently valid. */
  get token(): string {
    return this.#token;
  }

  /** The variables by which Parley finds it. */
  get environment(): Readonly<Record<string, string>> {
    return { TELEGRAM_BOT_TOKEN: this.token, TELEGRAM_API_ROOT: this.apiRoot };
  }

  /** The value for a bot's `apiRoot`. */
  get apiRoot(): string {
    return `http://127.0.0.1:${this.#door.port}`;
  }

  /** The calls that post something in a chat or change it, refused ones included. */
  get sent(): readonly Call[] {
    return this.calls.filter((call) => sends.has(call.method));
  }

  get platform(): Platform {
    return this.#platform;
  }

  /** Short for `people.sends`. */
  userSends(message: Parameters<People['sends']>[0]): StandingMessage {
    return this.people.sends(message);
  }

  /** Returns the messages in a chat now, oldest first. */
  messages(chatId: number): readonly StandingMessage[] {
    return [...(this.world.chats.get(chatId)?.messages.values() ?? [])];
  }

  /** Returns those of them that the bot wrote. */
  botMessages(chatId: number): readonly StandingMessage[] {
    return this.messages(chatId).filter((message) => message.from?.id === this.bot.id);
  }

  deletedMessages(chatId: number): readonly StandingMessage[] {
    return this.world.chats.get(chatId)?.deleted ?? [];
  }

  fault(fault: Fault, match: FaultMatch = {}): void {
    this.#faults.add(fault, match);
  }

  clearFaults(): void {
    this.#faults.clear();
  }

  /** From now on the token is refused. */
  revokeToken(): void {
    this.#isTokenRevoked = true;
  }

  /** Gives the bot another token; from now on the previous one is refused, and its connections end. */
  async renewToken(): Promise<void> {
    this.#token = `${this.bot.id}:${randomBytes(24).toString('base64url')}`;
    await this.goAway();
    await this.comeBack();
  }

  /** Resolves with the first value of `probe` that isn't undefined or false. Rejects after `deadlineMs`. */
  waitFor<T>(probe: () => T | undefined | false, deadlineMs?: number): Promise<T> {
    return this.#probes.waitFor(probe, deadlineMs);
  }

  /** Cuts every connection and refuses new ones. Updates keep accumulating. */
  async goAway(): Promise<void> {
    await this.#door.shut();
  }

  /** Listens again, on the same port. */
  async comeBack(): Promise<void> {
    await this.#door.open();
  }

  async close(): Promise<void> {
    await this.goAway();
  }

  async #serve(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://bot-api');
    const file = /^\/file\/bot([^/]+)\/(.+)$/.exec(url.pathname);
    if (file !== null) return this.#download(response, file[1] ?? '', file[2] ?? '');
    const call = /^\/bot([^/]+)\/(\w+)$/.exec(url.pathname);
    if (call === null) {
      answer(response, refusal(new ApiError(404, 'Not Found')));
      return;
    }
    if (!this.#isAuthorised(call[1] ?? ''))
      return answer(response, refusal(new ApiError(401, 'Unauthorized')));
    const method = call[2] ?? '';
    try {
      const params = readParams(request.headers['content-type'] ?? '', body, url.searchParams);
      this.#answerCall(method, params, response);
    } catch (error) {
      answer(response, refusal(error));
    }
  }

  #isAuthorised(token: string): boolean {
    return !this.#isTokenRevoked && decodeURIComponent(token) === this.#token;
  }

  #answerCall(method: string, params: Params, response: ServerResponse): void {
    const call: Call = {
      method,
      params: params.values,
      at: this.#platform.now(),
      status: 0,
      answered: false,
    };
    this.calls.push(call);
    const waitSeconds = this.#limiter?.take(method, Number(params.values.chat_id));
    if (waitSeconds !== undefined) {
      const limited = new ApiError(429, `Too Many Requests: retry after ${waitSeconds}`, {
        retry_after: waitSeconds,
      });
      this.#finish(call, response, refusal(limited));
      return;
    }
    const fault = this.#faults.take(method);
    if (fault?.kind === 'cut') {
      this.#cut(response);
      return;
    }
    if (fault?.kind === 'page') {
      this.#finish(call, response, page(fault.code));
      return;
    }
    if (fault?.kind === 'silence') {
      this.#probes.changed();
      return;
    }
    if (fault?.kind === 'answer') {
      const body = JSON.stringify({ ok: true, result: fault.result });
      this.#finish(call, response, { status: 200, body });
      return;
    }
    if (fault?.kind === 'refuse') {
      const { code, description, parameters } = fault;
      this.#finish(call, response, refusal(new ApiError(code, description, parameters)));
      return;
    }
    const done = (reply: Reply) => {
      if (fault?.kind === 'drop-answer') {
        call.status = reply.status;
        this.#cut(response);
        return;
      }
      if (fault?.kind === 'slow') {
        setTimeout(() => this.#finish(call, response, reply), fault.ms).unref();
        this.#probes.changed();
      } else this.#finish(call, response, reply);
    };
    if (method === 'getUpdates') this.#getUpdates(params, response, done);
    else done(this.#apply(call, method, params));
  }

  #apply(call: Call, method: string, params: Params): Reply {
    try {
      const handler = methods.get(method);
      if (handler === undefined) throw new ApiError(404, 'Not Found: method not found');
      const { result, messageId }: Outcome = handler(this.#platform, params);
      if (messageId !== undefined) call.messageId = messageId;
      return { status: 200, body: JSON.stringify({ ok: true, result }) };
    } catch (error) {
      return refusal(error);
    }
  }

  #getUpdates(params: Params, response: ServerResponse, done: (reply: Reply) => void): void {
    if (this.#platform.webhookUrl !== '') {
      const why =
        "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
      done(refusal(new ApiError(409, `Conflict: ${why}`)));
      return;
    }
    const allowed = params.json('allowed_updates');
    if (Array.isArray(allowed)) this.updates.setAllowed(allowed.map(String));
    const seconds = Math.min(50, Math.max(0, params.optionalInt('timeout') ?? 0));
    const limit = Math.min(100, Math.max(1, params.optionalInt('limit') ?? 100));
    const poll = {
      limit,
      isLong: seconds > 0,
      answer: (found: readonly TgUpdate[] | ApiError) => {
        clearTimeout(timer);
        done(
          found instanceof ApiError
            ? refusal(found)
            : { status: 200, body: JSON.stringify({ ok: true, result: found }) },
        );
      },
    };
    const timer = seconds > 0 ? setTimeout(() => this.updates.endPoll(poll), seconds * 1000) : undefined;
    const forget = this.updates.poll(params.optionalInt('offset') ?? 0, poll);
    response.once('close', () => {
      clearTimeout(timer);
      forget();
    });
    this.#probes.changed();
  }

  async #download(response: ServerResponse, token: string, path: string): Promise<void> {
    const file = [...this.world.files.values()].find((one) => one.path === path);
    if (!this.#isAuthorised(token) || file === undefined)
      return answer(response, refusal(new ApiError(404, 'Not Found')));
    const { statedBytes } = file;
    response.writeHead(200, {
      'content-type': 'application/octet-stream',
      ...(statedBytes !== undefined && { 'content-length': statedBytes }),
    });
    // A client that hangs up ends the stream; it may, and that isn't this server's fault.
    await pipeline(Readable.from(file.bytes()), response).catch(() => undefined);
  }

  #cut(response: ServerResponse): void {
    response.socket?.destroy();
    this.#probes.changed();
  }

  #finish(call: Call, response: ServerResponse, reply: Reply): void {
    call.status = reply.status;
    if (reply.description !== undefined) call.description = reply.description;
    call.answered = !response.destroyed;
    answer(response, reply);
    this.#probes.changed();
  }
}

type Reply = {
  readonly status: number;
  readonly body: string;
  readonly description?: string;
  readonly type?: string;
};

function refusal(error: unknown): Reply {
  if (!(error instanceof ApiError)) {
    // A fault of this server must not look like the platform's, so it names itself and fails the test.
    const description = `Internal Server Error: test server fault: ${String(error instanceof Error ? error.stack : error)}`;
    return { status: 500, description, body: JSON.stringify({ ok: false, error_code: 500, description }) };
  }
  const { code, message: description, parameters } = error;
  const body = JSON.stringify({
    ok: false,
    error_code: code,
    description,
    ...(parameters ? { parameters } : {}),
  });
  return { status: code, description, body };
}

function page(code: number): Reply {
  const text = `<html><head><title>${code} Bad Gateway</title></head><body>nginx/1.18.0</body></html>`;
  return { status: code, body: text, description: 'a page of the proxy', type: 'text/html' };
}

function answer(response: ServerResponse, { status, body, type = 'application/json' }: Reply): void {
  if (response.destroyed) return;
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}
