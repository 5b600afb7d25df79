/**
 * The socket of json-rpc mode. Nothing is requested or confirmed on it, and a connection whose other end is gone looks
 * open forever, so it is pinged, and given up on when nothing comes back.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Duplex } from 'node:stream';
import { Agent, buildConnector, ping, WebSocket } from 'undici';
import { backoffMs } from '#channel-kit/backoff.ts';
import { longestText } from '#channel-kit/read-json.ts';
import { isRedirect, RedirectRefused } from '#channel-kit/redirects.ts';
import type { Clock } from '#contracts/clock.ts';

export type SocketDeps = {
  readonly url: string;
  readonly clock: Clock;
  /** Time between two pings, ms; after twice that without a sign of life, the connection is given up on. */
  readonly heartbeatMs: number;
  /** How long the server may take to open the connection, ms. Default: 30 s. */
  readonly openLimitMs?: number;
  onFrame(text: string): void;
  onOpen(): void;
  /**
   * `lastHeardAt`: the last sign of life; undefined if the connection never opened. `isDoubted`: the ones before it
   * didn't stay open for long either.
   */
  onDown(reason: string, lastHeardAt: number | undefined, isDoubted: boolean): void;
};

export type ReceiveSocket = {
  /** Resolves when no further frame will be passed on. */
  stop(): Promise<void>;
};

const pauses = { firstMs: 500, longestMs: 5000 };
/** A connection open for less, ms, counts as a failed attempt; or one closed immediately would reopen immediately. */
const steadyMs = 10_000;
/** After this many failed attempts, a connection only counts as open at its first sign of life. */
const doubtedAfter = 3;
/** How long the server may take to open the connection, once it has accepted the call, ms. */
const usualOpenLimitMs = 30_000;

/** Connects, and connects again whenever the connection ends. */
export function startSocket(deps: SocketDeps): ReceiveSocket {
  const stopping = new AbortController();
  const { signal } = stopping;
  const loop = async () => {
    for (let failures = 0; !signal.aborted; ) {
      const began = deps.clock.now();
      const { reason, lastHeardAt } = await new Connection(deps, signal, failures >= doubtedAfter).ended;
      if (signal.aborted) return;
      const hasStood = lastHeardAt !== undefined && deps.clock.now() - began >= steadyMs;
      failures = hasStood ? 1 : failures + 1;
      deps.onDown(reason, lastHeardAt, failures >= doubtedAfter);
      const pauseMs = backoffMs(failures, pauses);
      await deps.clock.wait(pauseMs, signal);
    }
  };
  const running = loop();
  return {
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

type SocketEnd = { readonly reason: string; readonly lastHeardAt: number | undefined };

/** undici's diagnostics of every socket in the process. */
type SocketEvent = { readonly websocket?: unknown };
/** The same, of every answer; `headers`: names and values in turn. */
type AnswerEvent = {
  readonly request?: { readonly origin?: unknown; readonly path?: unknown; readonly upgrade?: unknown };
  readonly response?: { readonly statusCode?: unknown; readonly headers?: readonly unknown[] };
};
const answers = 'undici:request:headers';

const signsOfLife = ['undici:websocket:pong', 'undici:websocket:ping'];

/** One connection, from its first attempt to its end. */
class Connection {
  readonly ended: Promise<SocketEnd>;
  readonly #deps: SocketDeps;
  readonly #end: (ended: SocketEnd) => void;
  readonly #over = new AbortController();
  readonly #socket: WebSocket;
  #tcp: Duplex | undefined;
  #refusal: string | undefined;
  readonly #openLimit: NodeJS.Timeout;
  #lastHeardAt: number | undefined;
  /** Its opening has been reported, or will be immediately. */
  #isReported: boolean;

  constructor(deps: SocketDeps, stopping: AbortSignal, isDoubted: boolean) {
    this.#isReported = !isDoubted;
    const { promise, resolve } = Promise.withResolvers<SocketEnd>();
    this.#deps = deps;
    this.ended = promise;
    this.#end = resolve;
    this.#socket = new WebSocket(deps.url, { dispatcher: this.#agent() });
    for (const name of signsOfLife) subscribe(name, this.#onSign);
    subscribe(answers, this.#onAnswer);
    const tooLate = () => this.#finish('the server accepted the connection but didn’t answer');
    this.#openLimit = setTimeout(tooLate, deps.openLimitMs ?? usualOpenLimitMs);
    this.#socket.addEventListener('open', () => this.#opened());
    this.#socket.addEventListener('message', ({ data }) => this.#received(data));
    this.#socket.addEventListener('close', ({ code }) => this.#finish(`the connection ended (${code})`));
    this.#socket.addEventListener('error', () => this.#finish(this.#refusal ?? 'the connection failed'));
    if (stopping.aborted) this.#finish('stopped');
    else stopping.addEventListener('abort', () => this.#finish('stopped'), { signal: this.#over.signal });
  }

  /** Keeps the connection's TCP socket, because the WebSocket itself can't be closed without an answer. */
  #agent(): Agent {
    const connect = buildConnector({ timeout: 10_000 });
    return new Agent({
      webSocket: { maxPayloadSize: longestText },
      connect: (options, callback) =>
        connect(options, (...result) => {
          const [, tcp] = result;
          if (tcp !== null && tcp !== undefined) this.#tcp = tcp;
          callback(...result);
        }),
    });
  }

  readonly #onSign = (message: unknown): void => {
    if ((message as SocketEvent).websocket === this.#socket) this.#heard();
  };

  /** The WebSocket itself doesn't say why it wasn't opened. */
  readonly #onAnswer = (message: unknown): void => {
    const { request, response } = message as AnswerEvent;
    const url = new URL(this.#deps.url.replace(/^ws/, 'http'));
    const isOurs = request?.origin === url.origin && request.path === url.pathname + url.search;
    if (!isOurs || request.upgrade !== 'websocket') return;
    const status = Number(response?.statusCode);
    const fields = (response?.headers ?? []).map(String);
    const at = fields.findIndex((field, index) => index % 2 === 0 && field.toLowerCase() === 'location');
    this.#refusal = isRedirect(status)
      ? new RedirectRefused(url, at === -1 ? '' : (fields[at + 1] ?? '')).message
      : undefined;
  };

  #heard(): void {
    this.#lastHeardAt = this.#deps.clock.now();
    if (this.#isReported) return;
    this.#isReported = true;
    this.#deps.onOpen();
  }

  #opened(): void {
    if (this.#over.signal.aborted) return;
    clearTimeout(this.#openLimit);
    if (this.#isReported) this.#deps.onOpen();
    this.#lastHeardAt = this.#deps.clock.now();
    void this.#beat();
  }

  #received(data: unknown): void {
    if (this.#over.signal.aborted) return;
    this.#heard();
    if (typeof data === 'string') this.#deps.onFrame(data);
  }

  async #beat(): Promise<void> {
    const { clock, heartbeatMs } = this.#deps;
    while (!this.#over.signal.aborted) {
      ping(this.#socket, Buffer.from('parley'));
      await clock.wait(heartbeatMs, this.#over.signal);
      const silentMs = clock.now() - (this.#lastHeardAt ?? 0);
      if (silentMs > 2 * heartbeatMs) this.#finish(`nothing was heard for ${silentMs} ms`);
    }
  }

  #finish(reason: string): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    clearTimeout(this.#openLimit);
    for (const name of signsOfLife) unsubscribe(name, this.#onSign);
    unsubscribe(answers, this.#onAnswer);
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.close();
    this.#tcp?.destroy();
    this.#end({ reason, lastHeardAt: this.#lastHeardAt });
  }
}
