import type { IncomingMessage } from 'node:http';

/** The HTTP server as a channel sees it. Authentication, Host and Origin are checked before a handler runs. */
export interface RouteHost {
  /** Opens a WebSocket endpoint for signed-in clients under `/channels/<channel>/<path>`. */
  socket(path: string, onOpen: (socket: ClientSocket) => void): void;
  /**
   * Takes the files that signed-in clients send to `/uploads/<channel>`, each a stream of at most `maxBytes`, and drops
   * those that end up in no message (`/uploads/<channel>/drop`).
   */
  upload(take: (file: UploadedFile) => Promise<WebhookAnswer>, drop?: (id: string) => Promise<void>): void;
  /**
   * Opens a webhook, which needs no sign-in. `knowsSecret` is called before the body is read, and a caller without the
   * secret gets a 403; if it is absent, the handler checks the secret. A body of more than 1 MB gets a 413.
   */
  webhook(
    path: string,
    handle: (request: WebhookRequest) => Promise<WebhookAnswer>,
    knowsSecret?: (caller: Omit<WebhookRequest, 'body'>) => boolean,
  ): void;
}

/** A client's WebSocket, as a channel sees it. */
export interface ClientSocket {
  send(text: string): void;
  close(code: number, reason: string): void;
  onMessage(listener: (text: string) => void): void;
  /** Stops reading from the client, or resumes; what it sends meanwhile stays on its side. */
  setPaused(isPaused: boolean): void;
  onClose(listener: () => void): void;
}

/** A file as it arrives. Its sender describes it in the message that comes with it. */
export type UploadedFile = { readonly bytes: AsyncIterable<Uint8Array>; readonly maxBytes: number };

/** One webhook call; `params` is the part of the path after the webhook's own. */
export type WebhookRequest = {
  readonly params: string;
  readonly headers: IncomingMessage['headers'];
  /** Undefined for a body of more than 1 MB, which isn't kept. */
  readonly body: Uint8Array | undefined;
};

/** The HTTP answer to a webhook call. */
export type WebhookAnswer = { readonly status: number; readonly body?: string };
