import { request } from 'node:http';
import type { Notification } from './types.ts';

/** One POST to the webhook. `status` undefined: no answer yet, or none. */
export type WebhookPost = { readonly body: string; status: number | undefined };

/** A listener on a socket. `offer` returns whether the message was accepted; nothing waits for it. */
export type Listener = { readonly offer: (notification: Notification) => boolean };

type Line = { readonly read: () => void | Promise<void>; readonly isNews: boolean };

/**
 * json-rpc mode: signal-cli as a daemon, and the server's single loop that reads its lines. A notification goes to the
 * sockets that are free at this moment and then once to the webhook, while the loop waits for its answer. Answers of
 * calls come through the same loop.
 */
export class Daemon {
  /** RECEIVE_WEBHOOK_URL. */
  webhookUrl: string | undefined;
  /** Milliseconds between two notifications; 0: all in one write, of which a socket misses most. */
  paceMs = 5;
  readonly posts: WebhookPost[] = [];
  readonly listeners = new Set<Listener>();
  readonly #onChange: () => void;
  #lines: Line[] = [];
  #isReading = false;
  #generation = 0;
  #isDown = false;
  #gapFate: 'lost' | 'burst' = 'lost';
  #held: Notification[] = [];

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get isDown(): boolean {
    return this.#isDown;
  }

  emit(notification: Notification): void {
    if (this.#isDown) this.#held.push(notification);
    else this.#push({ isNews: true, read: () => this.#deliver(notification) });
  }

  /** Runs a call in signal-cli; resolves once the loop has read its answer, which may be never. */
  call<T>(apply: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      let outcome: () => void;
      try {
        const value = apply();
        outcome = () => resolve(value);
      } catch (error) {
        outcome = () => reject(error);
      }
      this.#push({ isNews: false, read: outcome });
    });
  }

  /** Loses the connection to signal-cli: pending calls are never answered. */
  stop(fate: 'lost' | 'burst' = 'lost'): void {
    this.#isDown = true;
    this.#gapFate = fate;
    this.#lines = [];
    this.#generation += 1;
    this.#isReading = false;
  }

  /**
   * Connects again. `lost`: signal-cli read what came meanwhile before anything listened to it; `burst`: it all comes
   * now, in one write.
   */
  start(): void {
    if (!this.#isDown) return;
    this.#isDown = false;
    const held = this.#held.splice(0);
    if (this.#gapFate === 'burst') this.inOneWrite(() => held.forEach((one) => void this.emit(one)));
  }

  /** Delivers what people do in `act` without pauses. */
  inOneWrite(act: () => void): void {
    const { paceMs } = this;
    this.paceMs = 0;
    const before = this.#lines.length;
    const wasReading = this.#isReading;
    this.#isReading = true;
    act();
    const lines = this.#lines.splice(before);
    this.paceMs = paceMs;
    this.#isReading = wasReading;
    this.#push({
      isNews: true,
      read: async () => {
        for (const line of lines) {
          const done = line.read();
          if (done !== undefined) await done;
        }
      },
    });
  }

  #push(line: Line): void {
    this.#lines.push(line);
    if (!this.#isReading) void this.#read(this.#generation);
  }

  async #read(generation: number): Promise<void> {
    this.#isReading = true;
    for (;;) {
      const line = this.#lines.shift();
      if (line === undefined) break;
      const done = line.read();
      if (done !== undefined) await done;
      if (line.isNews) await new Promise((resolve) => setTimeout(resolve, this.paceMs));
      if (generation !== this.#generation) return;
    }
    this.#isReading = false;
  }

  #deliver(notification: Notification): void | Promise<void> {
    for (const listener of this.listeners) listener.offer(notification);
    if (this.webhookUrl !== undefined) return this.#post(this.webhookUrl, notification);
    this.#onChange();
  }

  async #post(url: string, notification: Notification): Promise<void> {
    const body = JSON.stringify({ jsonrpc: '2.0', method: 'receive', params: notification });
    const post: WebhookPost = { body, status: undefined };
    this.posts.push(post);
    post.status = await postOnce(url, body);
    this.#onChange();
  }
}

/** Resolves with the status, or undefined if there was none. Waits as long as it takes. */
function postOnce(url: string, body: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'Go-http-client/1.1',
    };
    const call = request(url, { method: 'POST', headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    call.on('error', () => resolve(undefined));
    call.end(body);
  });
}
