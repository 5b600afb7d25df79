import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A receiver of the webhook's POSTs. */
export class Hook {
  /** The bodies, as JSON. */
  readonly bodies: Record<string, unknown>[] = [];
  /** Handles a body before it is answered; returns the status of the answer. */
  answer: (body: Record<string, unknown>) => number | Promise<number> = () => 200;
  readonly #http: Server;
  #port = 0;

  private constructor() {
    this.#http = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', async () => {
        const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
        this.bodies.push(body);
        response.writeHead(await this.answer(body)).end();
      });
    });
  }

  static async open(): Promise<Hook> {
    const hook = new Hook();
    hook.#http.listen(0, '127.0.0.1');
    await once(hook.#http, 'listening');
    hook.#port = (hook.#http.address() as AddressInfo).port;
    return hook;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/channels/signal/webhook/secret`;
  }

  close(): void {
    this.#http.close();
    this.#http.closeAllConnections();
  }
}
