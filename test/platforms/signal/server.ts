/**
 * signal-cli-rest-api as its callers meet it, and the hands of a test on the other side of it.
 *
 *   const server = await startSignalServer({ mode: 'json-rpc' });   // or 'normal', 'native'
 *   server.url, server.number, server.account                      // the bot's account
 *   const ada = server.world.addPerson({ name: 'Ada' });           // number: null hides it
 *   const team = server.world.addGroup({ name: 'Team', members: [ada, server.account] });
 *   server.webhookUrl = 'http://127.0.0.1:…';                      // RECEIVE_WEBHOOK_URL, json-rpc only
 *   const message = server.people.writes({ from: ada, to: team, text: '@Parley hi', mentioning: [server.account] });
 *   server.people.edits | deletes | reacts | types | receives | setsTimer | changesGroup | sendsUnreadable
 *   server.people.writes({ from: server.account, to: ada, … })     // the owner, on another device
 *   server.people.writes({ from: server.account, … })              // a note to self
 *   server.inOneWrite(() => …)                                     // a burst; a socket misses most of it
 *   server.fault({ kind: 'drop-answer' }, { path: '/v2/send' });   // see faults.ts
 *   server.messages(ada | team), server.calls, server.refusals, await server.waitFor(() => …)
 *   server.freezeSockets(), stopDaemon(), startDaemon(), goAway(), comeBack(), close()
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { Daemon, type WebhookPost } from './daemon.ts';
import { Door } from './door.ts';
import { type Fault, type FaultMatch, Faults } from './faults.ts';
import { Mailbox } from './mailbox.ts';
import { People } from './people.ts';
import type { Platform, Reply } from './platform.ts';
import { findRoute, type Match, matchPath } from './routes.ts';
import { rateLimited } from './send.ts';
import { Sockets } from './sockets.ts';
import {
  type Account,
  ApiError,
  badRequest,
  type Call,
  type Group,
  type Mode,
  type Notification,
  type Person,
  type Refusal,
  type StandingMessage,
} from './types.ts';
import { World } from './world.ts';

export type SignalServerOptions = {
  readonly mode?: Mode;
  /** `head` answers sends with an array and knows `***`. */
  readonly release?: '0.100' | 'head';
  /** The first account; more with `world.addAccount`. */
  readonly account?: Partial<Account>;
  /** No account yet: `finishLink` makes one. */
  readonly isUnlinked?: boolean;
  readonly webhookUrl?: string;
  readonly now?: () => number;
  readonly pingMs?: number;
  /** People's devices confirm the delivery of sends. Default: true. */
  readonly hasDeliveryReceipts?: boolean;
};

/** Starts it on a loopback port of its own. */
export async function startSignalServer(options: SignalServerOptions = {}): Promise<SignalServer> {
  const server = new SignalServer(options);
  await server.comeBack();
  return server;
}

export class SignalServer {
  readonly world: World;
  readonly people: People;
  /** Every call, in order of arrival. */
  readonly calls: Call[] = [];
  readonly refusals: Refusal[] = [];
  /** Everything that arrived for the accounts. */
  readonly notifications: Notification[] = [];
  readonly platform: Platform;
  readonly #daemon: Daemon;
  readonly #sockets: Sockets;
  readonly #mailboxes = new Map<string, Mailbox>();
  readonly #faults = new Faults();
  readonly #door: Door;
  readonly #waiters = new Set<() => void>();
  #current: Call | undefined;
  /** What arrives while the container is down. */
  #heldBySignal: Notification[] = [];

  constructor(options: SignalServerOptions) {
    const now = options.now ?? Date.now;
    const release = options.release ?? '0.100';
    this.world = new World(now);
    if (!options.isUnlinked) this.world.addAccount({ number: '+15550000001', ...options.account });
    const onChange = () => this.#changed();
    this.#daemon = new Daemon(onChange);
    this.#sockets = new Sockets({
      listeners: this.#daemon.listeners,
      pingMs: options.pingMs ?? 54_000,
      onChange,
      onMisuse: (why) => this.#refuse(undefined, 0, why),
    });
    this.people = new People({ world: this.world, emit: (one) => this.emit(one) });
    this.platform = {
      mode: options.mode ?? 'json-rpc',
      release,
      version: release === 'head' ? '0.100-head' : '0.100',
      world: this.world,
      people: this.people,
      now,
      typing: [],
      challenges: new Map(),
      captchas: [],
      links: [],
      unregistered: new Set(),
      hasDeliveryReceipts: options.hasDeliveryReceipts ?? true,
      logLevel: 'info',
      note: (why) => this.#refuse(this.#current, this.#current?.status ?? 0, why),
    };
    this.#door = new Door({
      onRequest: (request, response, body) => void this.#serve(request, response, body),
      onUpgrade: (request, tcp, head) => void this.#upgrade(request, tcp, head),
    });
    if (options.webhookUrl !== undefined) this.webhookUrl = options.webhookUrl;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#door.port}`;
  }

  get account(): Account {
    const [first] = this.world.accounts;
    if (first === undefined) throw new Error('test error: the server has no account');
    return first;
  }

  get number(): string {
    return this.account.number;
  }

  get webhookUrl(): string | undefined {
    return this.#daemon.webhookUrl;
  }

  set webhookUrl(url: string | undefined) {
    if (url !== undefined && this.platform.mode !== 'json-rpc')
      throw new Error('test error: the real server does not start with a webhook in this mode');
    this.#daemon.webhookUrl = url;
  }

  /** Every post to the webhook; `status` undefined while it waits, and when there was no answer. */
  get posts(): readonly WebhookPost[] {
    return this.#daemon.posts;
  }

  get openSockets(): number {
    return this.#sockets.count;
  }

  /** Accepted sends, oldest first. */
  get sent(): readonly Call[] {
    return this.calls.filter(({ path, timestamp }) => path === '/v2/send' && timestamp !== undefined);
  }

  /** What stands in a conversation of the first account, oldest first, deleted messages left out. */
  messages(where: Group | Person, account = this.account): readonly StandingMessage[] {
    const place = 'internalId' in where ? { group: where } : { person: where };
    return this.world.messages(account, place).filter(({ isDeleted }) => !isDeleted);
  }

  /** What stands there and was written by the account. */
  botMessages(where: Group | Person): readonly StandingMessage[] {
    return this.messages(where).filter(({ from }) => from.uuid === this.account.uuid);
  }

  /** What waits on Signal's server to be fetched (normal, native). */
  mailbox(number = this.number): Mailbox {
    const known = this.#mailboxes.get(number);
    if (known !== undefined) return known;
    const made = new Mailbox();
    this.#mailboxes.set(number, made);
    return made;
  }

  /** Something arrives for an account, well formed or not. */
  emit(notification: Notification): void {
    this.notifications.push(notification);
    this.#route(notification);
  }

  /** The last `count` notifications arrive once more. */
  redeliver(count: number): void {
    for (const one of this.notifications.slice(-count)) this.#route(one);
  }

  /** What `act` makes people do arrives at once, as after a reconnect of signal-cli. */
  inOneWrite(act: () => void): void {
    this.#daemon.inOneWrite(act);
  }

  fault(fault: Fault, match: FaultMatch = {}): void {
    this.#faults.add(fault, match);
  }

  clearFaults(): void {
    this.#faults.clear();
  }

  /** Sends are refused until a captcha is solved for one of the tokens. */
  challenge(...tokens: readonly string[]): void {
    this.platform.challenges.set(this.number, tokens);
  }

  /** The owner scans the picture of the last link: the account is here from now on. */
  finishLink(account: Partial<Account> & { readonly number: string }): Account {
    const link = this.platform.links.at(-1);
    if (link === undefined || link.isUsed) throw new Error('test error: no link waits to be scanned');
    link.isUsed = true;
    return this.world.addAccount(account);
  }

  freezeSockets(): void {
    this.#sockets.freeze();
  }

  sendErrorFrame(error: string): void {
    this.#sockets.sendError(error);
  }

  /** signal-cli is gone while the server stays. `fate`: what becomes of messages meanwhile. */
  stopDaemon(fate: 'lost' | 'burst' = 'lost'): void {
    this.#daemon.stop(fate);
  }

  startDaemon(): void {
    this.#daemon.start();
  }

  /** Cuts every connection and refuses new ones. Signal's server keeps what arrives. */
  async goAway(): Promise<void> {
    await this.#door.shut();
  }

  /** Listens again on the same port; in json-rpc mode what was kept comes at once, heard or not. */
  async comeBack(): Promise<void> {
    await this.#door.open();
    const held = this.#heldBySignal.splice(0);
    if (held.length > 0) this.inOneWrite(() => held.forEach((one) => void this.#daemon.emit(one)));
  }

  async close(): Promise<void> {
    await this.goAway();
  }

  /** Resolves with the first value of `probe` that is not undefined or false. Rejects after `deadlineMs`. */
  waitFor<T>(probe: () => T | undefined | false, deadlineMs = 10_000): Promise<T> {
    return new Promise((resolve, reject) => {
      const check = () => {
        const value = probe();
        if (value === undefined || value === false) return;
        finish();
        resolve(value);
      };
      const finish = () => {
        clearTimeout(timer);
        clearInterval(glances);
        this.#waiters.delete(check);
      };
      const timer = setTimeout(() => {
        finish();
        const last = this.calls.slice(-8).map(({ method, path, status }) => `${method} ${path} ${status}`);
        reject(
          new Error(
            `Signal test server: nothing matched in ${deadlineMs} ms; last calls: ${last.join('; ')}`,
          ),
        );
      }, deadlineMs);
      // What a client has received changes without a word to this server.
      const glances = setInterval(check, 10);
      this.#waiters.add(check);
      check();
    });
  }

  #route(notification: Notification): void {
    if (this.platform.mode !== 'json-rpc') this.mailbox(notification.account).add(notification);
    else if (this.#door.isOpen) this.#daemon.emit(notification);
    else this.#heldBySignal.push(notification);
    this.#changed();
  }

  #changed(): void {
    for (const check of [...this.#waiters]) check();
  }

  #refuse(call: Call | undefined, status: number, why: string): void {
    this.refusals.push({ call, status, why });
  }

  async #upgrade(request: IncomingMessage, tcp: Duplex, head: Buffer): Promise<void> {
    const { path } = readUrl(request);
    const number = matchPath('/v1/receive/:number', path)?.[0];
    if (number !== undefined && this.platform.mode === 'json-rpc') {
      this.#sockets.accept(request, tcp, head, number);
      return;
    }
    // No socket here: the handshake is a GET like any other, and it consumes.
    const call = this.#begin(request, Buffer.alloc(0));
    const reply = await this.#answerOf(call, request);
    this.#close(call, reply);
    if (number !== undefined) this.#refuse(call, reply.status, 'a socket was asked for where there is none');
    const { payload, type } = encode(reply);
    tcp.end(
      `HTTP/1.1 ${reply.status} Answer\r\nContent-Type: ${type}\r\nContent-Length: ${payload.length}\r\nConnection: close\r\n\r\n${payload.toString('latin1')}`,
      'latin1',
    );
  }

  async #serve(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
    const call = this.#begin(request, body);
    const fault = this.#faults.take(call.method, call.path);
    if (fault !== undefined) call.fault = fault.kind;
    const cut = () => {
      response.socket?.destroy();
      this.#changed();
    };
    switch (fault?.kind) {
      case 'cut':
        return cut();
      case 'page':
        return this.#finish(call, response, { status: fault.status, ...page(fault.status) });
      case 'refuse':
        return this.#finish(call, response, refusal(new ApiError(fault.status, fault.error)));
      case 'rate-limit': {
        if (fault.isDelivered) await this.#answerOf(call, request);
        return this.#finish(call, response, refusal(rateLimited(this.platform, this.number, fault.tokens)));
      }
      case 'hang':
        if (fault.isApplied) call.timestamp = (await this.#answerOf(call, request)).timestamp ?? 0;
        return this.#changed();
    }
    const reply = await this.#answerOf(call, request, fault?.kind === 'partial' ? fault.failed : {});
    if (fault?.kind === 'slow') await new Promise((resolve) => setTimeout(resolve, fault.ms));
    if (fault?.kind !== 'drop-answer') return this.#finish(call, response, reply);
    call.status = reply.status;
    if (reply.timestamp !== undefined) call.timestamp = reply.timestamp;
    cut();
  }

  #begin(request: IncomingMessage, body: Buffer): Call {
    const { path, query } = readUrl(request);
    const { method = 'GET' } = request;
    const at = this.platform.now();
    const call = {
      method,
      path: decodeURIComponent(path),
      query,
      body: readBody(body),
      at,
      status: 0,
      answer: '',
      answered: false,
    };
    this.calls.push(call);
    return call;
  }

  async #answerOf(
    call: Call,
    request: IncomingMessage,
    failing: Readonly<Record<string, string>> = {},
  ): Promise<Reply> {
    const { path } = readUrl(request);
    try {
      const receiver = matchPath('/v1/receive/:number', path)?.[0];
      if (receiver !== undefined && call.method === 'GET') return await this.#receive(call, receiver);
      const match = findRoute(call.method, path);
      if (match === undefined)
        return { status: 404, bytes: Buffer.from('404 page not found'), type: 'text/plain' };
      return await this.#run(call, match, failing);
    } catch (error) {
      const reply = refusal(error);
      this.#refuse(call, reply.status, error instanceof Error ? error.message : String(error));
      return reply;
    }
  }

  #run(call: Call, match: Match, failing: Readonly<Record<string, string>>): Reply | Promise<Reply> {
    const apply = () => {
      this.#current = call;
      const { parts, number } = match;
      return match.route.handler(this.platform, {
        body: call.body,
        query: call.query,
        parts,
        number,
        failing,
      });
    };
    if (!match.route.asksSignalCli) return apply();
    if (this.platform.mode !== 'json-rpc') return this.mailbox(senderOf(call, match)).alone(apply);
    if (this.#daemon.isDown) throw badRequest('write tcp 127.0.0.1:6001: use of closed network connection');
    return this.#daemon.call(apply);
  }

  async #receive(call: Call, number: string): Promise<Reply> {
    if (this.platform.mode === 'json-rpc') {
      const why =
        "websocket: the client is not using the websocket protocol: 'upgrade' token not found in 'Connection' header";
      this.#refuse(call, 400, why);
      const bytes = Buffer.from(`Bad Request\n${JSON.stringify({ error: why })}`);
      return { status: 400, bytes, type: 'text/plain; charset=utf-8' };
    }
    const numeric = (field: string, otherwise: string) => {
      const text = call.query[field] ?? otherwise;
      if (!/^-?\d+$/.test(text)) throw badRequest(`Couldn't process request - ${field} needs to be numeric!`);
      return Number(text);
    };
    const timeoutMs = numeric('timeout', '1') * 1000;
    const max = numeric('max_messages', '0');
    for (const field of ['ignore_attachments', 'ignore_stories', 'send_read_receipts'])
      if (!['true', 'false', undefined].includes(call.query[field]))
        throw badRequest(
          `Couldn't process request - ${field} parameter needs to be either 'true' or 'false'`,
        );
    this.world.account(number);
    const found = await this.mailbox(number).fetch({ max, timeoutMs });
    return { status: 200, bytes: Buffer.from(JSON.stringify(found)), type: 'text/plain; charset=utf-8' };
  }

  #finish(call: Call, response: ServerResponse, reply: Reply): void {
    call.answered = !response.destroyed;
    const { payload, type } = encode(reply);
    if (!response.destroyed) {
      response.writeHead(reply.status, {
        ...(reply.status === 204 ? {} : { 'content-type': type, 'content-length': payload.length }),
      });
      response.end(reply.status === 204 ? undefined : payload);
    }
    call.answer = payload.toString();
    this.#close(call, reply);
  }

  #close(call: Call, reply: Reply): void {
    call.status = reply.status;
    if (reply.timestamp !== undefined) call.timestamp = reply.timestamp;
    this.#changed();
  }
}

/** Whose signal-cli a call waits for. */
function senderOf(call: Call, match: Match): string {
  if (match.number !== '') return match.number;
  const { number } = (call.body ?? {}) as { number?: unknown };
  return typeof number === 'string' ? number : '';
}

function readUrl(request: IncomingMessage) {
  const url = new URL(request.url ?? '/', 'http://signal');
  return { path: url.pathname, query: Object.fromEntries(url.searchParams) };
}

function readBody(body: Buffer): unknown {
  const text = body.toString();
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text === '' ? undefined : text;
  }
}

function refusal(error: unknown): Reply {
  // A fault of this server must not look like the platform's: it says so and fails the test.
  if (!(error instanceof ApiError)) {
    const what = error instanceof Error ? error.stack : String(error);
    return { status: 500, body: { error: `test server fault: ${what}` } };
  }
  const body = { error: error.message, ...error.fields };
  const type = error.isPlain ? 'text/plain; charset=utf-8' : 'application/json; charset=utf-8';
  return { status: error.status, body, type };
}

function page(status: number) {
  const text = `<html><head><title>${status} Bad Gateway</title></head><body>nginx/1.18.0</body></html>`;
  return { bytes: Buffer.from(text), type: 'text/html' };
}

function encode(reply: Reply): { payload: Buffer; type: string } {
  const payload = Buffer.from(reply.bytes ?? (reply.body === undefined ? '' : JSON.stringify(reply.body)));
  return { payload, type: reply.type ?? 'application/json; charset=utf-8' };
}
