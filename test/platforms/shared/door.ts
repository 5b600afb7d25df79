import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export type DoorDeps = {
  readonly onRequest: (request: IncomingMessage, response: ServerResponse, body: Buffer) => void;
  readonly onUpgrade?: (request: IncomingMessage, tcp: Duplex, head: Buffer) => void;
};

/** A server on its own loopback port that can be closed and opened again. */
export class Door {
  readonly #deps: DoorDeps;
  readonly #connections = new Set<Socket>();
  #http: Server | undefined;
  #port = 0;

  constructor(deps: DoorDeps) {
    this.#deps = deps;
  }

  get port(): number {
    return this.#port;
  }

  get isOpen(): boolean {
    return this.#http !== undefined;
  }

  async open(): Promise<void> {
    if (this.#http !== undefined) return;
    const http = createServer((request, response) => void this.#read(request, response));
    http.keepAliveTimeout = 60_000;
    if (this.#deps.onUpgrade !== undefined) http.on('upgrade', this.#deps.onUpgrade);
    http.on('connection', (socket) => {
      this.#connections.add(socket);
      socket.setNoDelay(true);
      socket.once('close', () => this.#connections.delete(socket));
      // A client that resets the connection isn't this server's fault.
      socket.on('error', () => undefined);
    });
    http.listen(this.#port, '127.0.0.1');
    await once(http, 'listening');
    this.#port = (http.address() as AddressInfo).port;
    this.#http = http;
  }

  /** Cuts every connection and refuses new ones. */
  async shut(): Promise<void> {
    const http = this.#http;
    if (http === undefined) return;
    this.#http = undefined;
    const closed = once(http, 'close');
    http.close();
    for (const connection of this.#connections) connection.destroy();
    await closed;
  }

  async #read(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return; // The client hung up in the middle of its request: nothing arrived, so nothing is answered.
    }
    this.#deps.onRequest(request, response, Buffer.concat(chunks));
  }
}
