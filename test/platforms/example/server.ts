/**
 * A tiny chat network of our own for the example adapter: rooms with messages, and three ways of telling a bot what
 * happened. It simulates what real networks get wrong: lost answers, silence, floods, short memory.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Span } from '../../../src/contracts/formatted-text.ts';
import { type EventLog, eventLog } from './event-log.ts';

export type Author = { readonly id: string; readonly name: string; readonly isBot: boolean };
export type Room = { readonly id: string; readonly kind: 'dm' | 'group' };

export type StoredMessage = {
  readonly id: number;
  readonly author: Author;
  readonly room: Room;
  readonly thread?: string;
  /** The original author of a forwarded message. */
  readonly forwardOf?: string;
  /** The message that it replies to. */
  readonly quotes?: string | undefined;
  text: string;
  spans: readonly Span[];
  version: number;
  botReaction?: string | undefined;
  readonly fileName?: string | undefined;
  /** The file in base64. */
  readonly file?: string | undefined;
  isDeleted: boolean;
};

/** What happens to the next send. */
export type SendFault =
  | { readonly kind: 'refuse'; readonly status: number; readonly body: object }
  | { readonly kind: 'drop-answer' }
  | { readonly kind: 'hang'; readonly taken: () => void };

export const ada: Author = { id: 'person-7', name: 'Ada', isBot: false };
export const theBot: Author = { id: 'bot-1', name: 'Example Bot', isBot: true };
export const token = 'example-token-with-enough-characters';
const maxText = 500;

export class ExampleServer {
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  readonly messages: StoredMessage[] = [];
  readonly log: EventLog = eventLog();
  #faults: SendFault[] = [];
  #reactions = 0;
  #historyGate: () => Promise<void> = async () => undefined;
  isHistoryRefused = false;
  #port = 0;

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Stops listening; `listen` brings the server back on the same port. */
  async goAway(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.log.interrupt();
    this.#server.closeAllConnections();
    await closed;
  }

  async close(): Promise<void> {
    this.log.close();
    await this.goAway();
  }

  faultNext(fault: SendFault): void {
    this.#faults.push(fault);
  }

  /** Holds back answers with history; `asked` resolves with the first request. */
  holdHistory(): { readonly asked: Promise<void>; release(): void } {
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    this.#historyGate = () => {
      asked.resolve();
      return gate.promise;
    };
    return { asked: asked.promise, release: gate.resolve };
  }

  says(
    author: Author,
    said: { room: Room; text: string; thread?: string; forwardOf?: string },
  ): StoredMessage {
    return this.#store({ author, spans: [], ...said });
  }

  edits(message: StoredMessage, text: string): void {
    message.text = text;
    message.version += 1;
    this.#report('edit', message, { text, version: message.version });
  }

  deletes(message: StoredMessage): void {
    message.isDeleted = true;
    this.#report('delete', message, {});
  }

  reacts(message: StoredMessage, emoji: string, isRemoved: boolean): void {
    this.#reactions += 1;
    this.#report('reaction', message, { emoji, isRemoved, change: this.#reactions });
  }

  #store(draft: Omit<StoredMessage, 'id' | 'version' | 'isDeleted'>): StoredMessage {
    const message = { ...draft, id: this.messages.length + 1, version: 1, isDeleted: false };
    this.messages.push(message);
    this.log.add(eventOf(message));
    return message;
  }

  #report(kind: string, message: StoredMessage, more: object): void {
    const { text: _text, ...event } = eventOf(message);
    this.log.add({ ...event, kind, ...more });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.headers.authorization !== `Bearer ${token}`) return reply(response, 401, { code: 'token' });
    const { pathname, searchParams } = new URL(request.url ?? '/', this.url);
    const after = Number(searchParams.get('after') ?? 0);
    if (pathname === '/me') return reply(response, 200, { id: theBot.id, name: theBot.name });
    if (pathname === '/events') return reply(response, 200, await this.log.readAfter(after));
    if (pathname === '/stream') return this.log.stream(response);
    const [, room = '', id, part] =
      /^\/rooms\/([^/]+)\/messages(?:\/(\d+))?(\/reactions)?$/.exec(pathname) ?? [];
    if (request.method === 'GET') return this.#answerHistory(response, room, after);
    const body = await readBody(request);
    const fault = this.#faults.shift();
    if (fault?.kind === 'refuse') return reply(response, fault.status, fault.body);
    const answer =
      part === undefined ? this.#change(request.method ?? '', { room, id, body }) : this.#react(id, body);
    if (fault?.kind === 'drop-answer') return void request.socket.destroy();
    if (fault?.kind === 'hang') return fault.taken();
    reply(response, answer.status, answer);
  }

  async #answerHistory(response: ServerResponse, room: string, after: number): Promise<void> {
    await this.#historyGate();
    if (this.isHistoryRefused) return reply(response, 403, { code: 'no-history' });
    const found = this.messages.filter((one) => one.room.id === room && one.id > after && !one.isDeleted);
    reply(response, 200, { messages: found.map(eventOf) });
  }

  #react(id: string | undefined, { emoji }: Body) {
    const message = this.messages.find((one) => String(one.id) === id);
    if (message) message.botReaction = emoji;
    return { status: message ? 200 : 404 };
  }

  #change(method: string, { room, id, body }: { room: string; id: string | undefined; body: Body }) {
    const { text = '', spans = [], quotes, file, fileName } = body;
    if (text.length > maxText) return { status: 400, code: 'too-long' };
    if (method === 'POST') {
      const kind = room.startsWith('dm-') ? 'dm' : 'group';
      const draft = {
        author: theBot,
        room: { id: room, kind },
        text,
        spans,
        quotes,
        file,
        fileName,
      } as const;
      return { status: 200, id: this.#store(draft).id };
    }
    const message = this.messages.find((one) => String(one.id) === id && !one.isDeleted);
    if (message === undefined) return { status: 404, code: 'gone' };
    if (method === 'DELETE') message.isDeleted = true;
    else Object.assign(message, { text, spans });
    return { status: 200, id: message.id };
  }
}

type Body = {
  readonly emoji?: string;
  readonly fileName?: string;
  readonly file?: string;
  readonly text?: string;
  readonly spans?: readonly Span[];
  readonly quotes?: string;
};

function eventOf({ id, author, room, thread, forwardOf, text }: StoredMessage) {
  return {
    kind: 'message',
    id,
    room: room.id,
    roomKind: room.kind,
    author,
    text,
    at: 1_790_000_000_000 + id,
    thread,
    forwardOf,
  };
}

function reply(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function readBody(request: IncomingMessage): Promise<Body> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text === '' ? {} : JSON.parse(text);
}
