/** Calls and payloads as a faulty client would make them, without a library in between. */
import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { DiscordServer } from './server.ts';
import type { Wire } from './types.ts';

export type RawAnswer = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
};

/** Makes a call. `body` undefined: none. `token` is the complete authorization header; if omitted, the right one. */
export async function callRaw(
  server: DiscordServer,
  method: string,
  path: string,
  body?: unknown,
  token = `Bot ${server.token}`,
): Promise<RawAnswer> {
  const isForm = body instanceof FormData;
  const response = await fetch(`${server.apiUrl}/v10${path}`, {
    method,
    headers: { authorization: token, ...(isForm ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const parsed = text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : {};
  return { status: response.status, headers: response.headers, body: parsed };
}

/** Returns an answer's body as the list that it is. */
export const listOf = ({ body }: RawAnswer) => body as unknown as readonly Wire[];

/** Returns status, code and text of a refusal. */
export async function refusalOf(answer: Promise<RawAnswer>): Promise<string> {
  const { status, body } = await answer;
  return `${status} ${String(body.code)} ${String(body.message)}`;
}

/** Returns the body of an answer as text, to look for what is wrong. */
export const bodyText = async (answer: Promise<RawAnswer>) => JSON.stringify((await answer).body);

export type RawPayload = {
  readonly op: number;
  readonly s: number | null;
  readonly t: string | null;
  readonly d: Wire;
};

/** A gateway connection that only does what the test tells it to. */
export class RawGateway {
  readonly received: RawPayload[] = [];
  readonly #socket: WebSocket;
  readonly #token: string;
  closeCode: number | undefined;

  private constructor(socket: WebSocket, token: string) {
    this.#socket = socket;
    this.#token = token;
    socket.on('message', (data) => this.received.push(JSON.parse(String(data)) as RawPayload));
    socket.on('close', (code) => {
      this.closeCode = code;
    });
  }

  static async open(server: DiscordServer, query = 'v=10&encoding=json'): Promise<RawGateway> {
    const socket = new WebSocket(`${server.platform.gatewayUrl()}/?${query}`);
    const gateway = new RawGateway(socket, server.token);
    await once(socket, 'open');
    return gateway;
  }

  send(payload: unknown): void {
    this.#socket.send(typeof payload === 'string' ? payload : JSON.stringify(payload));
  }

  identify(intents: number, more: Wire = {}): void {
    const properties = { os: 'linux', browser: 'test', device: 'test' };
    this.send({ op: 2, d: { token: this.#token, intents, properties, ...more } });
  }

  resume(sessionId: string, seq: number, more: Wire = {}): void {
    this.send({ op: 6, d: { token: this.#token, session_id: sessionId, seq, ...more } });
  }

  /** Returns the events of this name, in order of arrival. */
  events(name: string): readonly RawPayload[] {
    return this.received.filter((payload) => payload.t === name);
  }

  close(code?: number): void {
    this.#socket.close(code);
  }

  terminate(): void {
    this.#socket.terminate();
  }
}
