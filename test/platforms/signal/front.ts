import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { Door } from '../shared/door.ts';
import type { Daemon } from './daemon.ts';
import type { Fault, Faults } from './faults.ts';
import type { Journal } from './journal.ts';
import type { Mailbox } from './mailbox.ts';
import type { Platform, Reply } from './platform.ts';
import { encode, mixedWith, page, readBody, readUrl, refusal } from './replies.ts';
import { findRoute, type Match, matchPath } from './routes.ts';
import { rateLimited } from './send.ts';
import type { Sockets } from './sockets.ts';
import { ApiError, badRequest, type Call } from './types.ts';

type FrontDeps = {
  readonly platform: Platform;
  readonly journal: Journal;
  readonly faults: Faults;
  readonly daemon: Daemon;
  readonly sockets: Sockets;
  readonly mailbox: (number: string) => Mailbox;
  readonly firstNumber: () => string;
};

type Failing = Readonly<Record<string, string>>;
const receivePath = '/v1/receive/:number';
const flags = ['ignore_attachments', 'ignore_stories', 'send_read_receipts'];

/** Receives calls, applies faults to them, and answers. */
export class Front {
  readonly door: Door;
  readonly #deps: FrontDeps;

  constructor(deps: FrontDeps) {
    this.#deps = deps;
    this.door = new Door({
      onRequest: (request, response, body) => void this.#serve(request, response, body),
      onUpgrade: (request, tcp, head) => void this.#upgrade(request, tcp, head),
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
    const { journal, faults, platform, firstNumber } = this.#deps;
    const call = this.#begin(request, body);
    const fault = faults.take(call.method, call.path);
    if (fault !== undefined) call.fault = fault.kind;
    switch (fault?.kind) {
      case 'cut':
        return this.#cut(response);
      case 'page':
        return this.#finish(call, response, page(fault.status));
      case 'refuse':
        return this.#finish(call, response, refusal(new ApiError(fault.status, fault.error)));
      case 'rate-limit':
        if (fault.isDelivered) await this.#answerOf(call, request);
        return this.#finish(call, response, refusal(rateLimited(platform, firstNumber(), fault.tokens)));
      case 'hang':
        if (fault.isApplied) note(call, await this.#answerOf(call, request));
        return journal.changed();
    }
    await this.#answer(call, request, response, fault);
  }

  async #answer(call: Call, request: IncomingMessage, response: ServerResponse, fault: Fault | undefined) {
    const reply = await this.#answerOf(call, request, fault?.kind === 'partial' ? fault.failed : {});
    if (fault?.kind === 'mixed-output') {
      const { lines, failed = false } = fault;
      return this.#finish(call, response, mixedWith(lines, { reply, failed }));
    }
    if (fault?.kind === 'slow') await new Promise((resolve) => setTimeout(resolve, fault.ms));
    if (fault?.kind !== 'drop-answer') return this.#finish(call, response, reply);
    call.status = reply.status;
    note(call, reply);
    return this.#cut(response);
  }

  async #upgrade(request: IncomingMessage, tcp: Duplex, head: Buffer): Promise<void> {
    const { sockets, journal, platform, faults } = this.#deps;
    const call = this.#begin(request, Buffer.alloc(0));
    const number = matchPath(receivePath, readUrl(request).path)?.[0];
    const fault = faults.take(call.method, call.path, true);
    if (fault !== undefined) return this.#failHandshake(call, tcp, fault);
    if (number !== undefined && platform.mode === 'json-rpc') {
      call.status = 101;
      call.answered = true;
      sockets.accept(request, tcp, head, number);
      return;
    }
    // There is no socket here: the handshake is a GET like any other, and it consumes messages.
    const reply = await this.#answerOf(call, request);
    if (number !== undefined) journal.refuse(call, 'a socket was asked for where there is none');
    this.#finishRaw(call, tcp, reply);
  }

  #failHandshake(call: Call, tcp: Duplex, fault: Fault): void {
    call.fault = fault.kind;
    if (fault.kind === 'page') this.#finishRaw(call, tcp, page(fault.status));
    else if (fault.kind === 'refuse')
      this.#finishRaw(call, tcp, refusal(new ApiError(fault.status, fault.error)));
    else if (fault.kind !== 'hang') tcp.destroy();
  }

  /** Answers a handshake like any other request. */
  #finishRaw(call: Call, tcp: Duplex, reply: Reply): void {
    const { payload, type } = encode(reply);
    const lines = [`HTTP/1.1 ${reply.status} OK`, `Content-Type: ${type}`, 'Connection: close'];
    tcp.write(`${lines.join('\r\n')}\r\nContent-Length: ${payload.length}\r\n\r\n`);
    tcp.end(payload);
    call.answered = true;
    this.#close(call, reply, payload);
  }

  #begin(request: IncomingMessage, body: Buffer): Call {
    const { path, query } = readUrl(request);
    return this.#deps.journal.begin({
      method: request.method ?? 'GET',
      path: decodeURIComponent(path),
      query,
      body: readBody(body),
    });
  }

  async #answerOf(call: Call, request: IncomingMessage, failing: Failing = {}): Promise<Reply> {
    const { path } = readUrl(request);
    try {
      const receiver = matchPath(receivePath, path)?.[0];
      if (receiver !== undefined && call.method === 'GET') return await this.#receive(call, receiver);
      const match = findRoute(call.method, path);
      if (match === undefined) throw new ApiError(404, '404 page not found', { isPage: true });
      return await this.#run(call, match, failing);
    } catch (error) {
      this.#deps.journal.refuse(call, error instanceof Error ? error.message : String(error));
      return refusal(error);
    }
  }

  async #run(call: Call, match: Match, failing: Failing): Promise<Reply> {
    const { platform, daemon, mailbox, journal } = this.#deps;
    const { parts, number, route } = match;
    const apply = () => {
      journal.current = call;
      return route.handler(platform, { body: call.body, query: call.query, parts, number, failing });
    };
    if (!route.asksSignalCli) return apply();
    if (platform.mode === 'json-rpc') {
      if (daemon.isDown) throw disconnected(call);
      const reply = daemon.call(apply);
      for (const act of platform.afterwards.splice(0)) act();
      return reply;
    }
    const reply = await mailbox(number === '' ? senderOf(call) : number).alone(apply);
    for (const act of platform.afterwards.splice(0)) act();
    return reply;
  }

  async #receive(call: Call, number: string): Promise<Reply> {
    const { platform, mailbox } = this.#deps;
    if (platform.mode === 'json-rpc') {
      const why =
        "websocket: the client is not using the websocket protocol: 'upgrade' token not found in 'Connection' header";
      throw new ApiError(400, why, { isPlain: true, prefix: 'Bad Request\n' });
    }
    const refuse = (what: string) => badRequest(`Couldn't process request - ${what}`);
    const numeric = (field: string, otherwise: string) => {
      const text = call.query[field] ?? otherwise;
      if (!/^-?\d+$/.test(text)) throw refuse(`${field} needs to be numeric!`);
      return Number(text);
    };
    const timeoutMs = numeric('timeout', '1') * platform.secondMs;
    const max = numeric('max_messages', '0');
    for (const flag of flags)
      if (!['true', 'false', undefined].includes(call.query[flag]))
        throw refuse(`${flag} parameter needs to be either 'true' or 'false'`);
    platform.world.account(number);
    const found = await mailbox(number).fetch({ max, timeoutMs });
    return { status: 200, bytes: Buffer.from(JSON.stringify(found)), type: 'text/plain; charset=utf-8' };
  }

  #cut(response: ServerResponse): void {
    response.socket?.destroy();
    this.#deps.journal.changed();
  }

  #finish(call: Call, response: ServerResponse, reply: Reply): void {
    const { payload, type } = encode(reply);
    call.answered = !response.destroyed;
    if (!response.destroyed) {
      const headers = { 'content-type': type, 'content-length': payload.length };
      response.writeHead(reply.status, reply.status === 204 ? {} : headers);
      response.end(reply.status === 204 ? undefined : payload);
    }
    this.#close(call, reply, payload);
  }

  #close(call: Call, reply: Reply, payload: Buffer): void {
    call.status = reply.status;
    call.answer = payload.toString();
    note(call, reply);
    this.#deps.journal.changed();
  }
}

function note(call: Call, { timestamp }: Reply): void {
  if (timestamp !== undefined) call.timestamp = timestamp;
}

function disconnected(call: Call): ApiError {
  const why = 'write tcp 127.0.0.1:40000->127.0.0.1:6001: use of closed network connection';
  return call.path === '/v1/accounts'
    ? new ApiError(500, `Couldn't get list of accounts: ${why}`)
    : badRequest(why);
}

/** Returns the account whose signal-cli a send waits for. */
function senderOf(call: Call): string {
  const { number } = (call.body ?? {}) as { number?: unknown };
  return typeof number === 'string' ? number : '';
}
