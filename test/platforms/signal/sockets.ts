import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Listener } from './daemon.ts';
import type { Notification } from './types.ts';

type SocketsDeps = {
  readonly listeners: Set<Listener>;
  readonly onChange: () => void;
  /** Called when a client breaks the socket by what it sends. */
  readonly onMisuse: (why: string) => void;
};

/** As gorilla/websocket in the server does. */
const pingMs = 54_000;
/** The most a client may send; more closes the socket with 1009. */
const readLimit = 512;

/** The receiving sockets of json-rpc mode. Any number is accepted, whether or not it is registered. */
export class Sockets {
  readonly #deps: SocketsDeps;
  readonly #door = new WebSocketServer({ noServer: true, maxPayload: readLimit });
  readonly #open = new Set<ReceiveSocket>();

  constructor(deps: SocketsDeps) {
    this.#deps = deps;
  }

  get count(): number {
    return this.#open.size;
  }

  accept(request: IncomingMessage, tcp: Duplex, head: Buffer, number: string): void {
    this.#door.handleUpgrade(request, tcp, head, (ws) => this.#take(ws, tcp, number));
  }

  /** From now on these sockets carry nothing in either direction, and neither side is notified. */
  freeze(): void {
    for (const socket of this.#open) socket.freeze();
  }

  /** Sends an error instead of a message. */
  sendError(error: string): void {
    for (const socket of this.#open) socket.send(JSON.stringify({ error }));
  }

  #take(ws: WebSocket, tcp: Duplex, number: string): void {
    const { listeners, onChange, onMisuse } = this.#deps;
    const socket = new ReceiveSocket(ws, tcp, number);
    this.#open.add(socket);
    listeners.add(socket);
    const pings = setInterval(() => socket.ping(), pingMs);
    pings.unref();
    ws.on('error', (error) => onMisuse(`socket: ${error.message}`));
    ws.on('close', () => {
      clearInterval(pings);
      this.#open.delete(socket);
      listeners.delete(socket);
      onChange();
    });
    onChange();
  }
}

class ReceiveSocket implements Listener {
  readonly #ws: WebSocket;
  readonly #tcp: Duplex;
  readonly #number: string;
  #isBusy = false;
  #isFrozen = false;

  constructor(ws: WebSocket, tcp: Duplex, number: string) {
    this.#ws = ws;
    this.#tcp = tcp;
    this.#number = number;
  }

  /** There is no buffer: what comes while a message is being written is dropped. */
  offer(notification: Notification): boolean {
    if (this.#isBusy || notification.account !== this.#number) return false;
    this.#isBusy = true;
    this.send(JSON.stringify(notification));
    return true;
  }

  send(text: string): void {
    const free = () => {
      this.#isBusy = false;
    };
    if (this.#isFrozen) free();
    else this.#ws.send(text, () => setImmediate(free));
  }

  ping(): void {
    if (!this.#isFrozen) this.#ws.ping();
  }

  freeze(): void {
    this.#isFrozen = true;
    this.#tcp.pause();
  }
}
