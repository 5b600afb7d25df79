import { createHash, timingSafeEqual } from 'node:crypto';
import type { Log } from '#contracts/log.ts';
import type { RouteHost } from '#contracts/route-host.ts';

/**
 * Mounts `POST /channels/signal/webhook/<secret>`, which the server calls for everything that arrives. 200 means that
 * the message is safe; the server never sends it again, whatever the answer. Until it is answered, the server reads
 * nothing else, including the answers to Parley's own calls, so nothing here waits for a call.
 */
export function mountWebhook(deps: {
  readonly routes: RouteHost;
  readonly secret: string;
  readonly log: Log;
  onCalled(): void;
  /** Resolves when the message is safe. */
  take(raw: string): Promise<void>;
  /** Called for a message neither stored nor kept, which isn't sent again. `raw`: absent for one that is too large. */
  onLost(reason: string, raw?: string): Promise<void>;
}): void {
  const { routes, secret, log, onCalled, take, onLost } = deps;
  const wanted = digest(secret);
  const knowsSecret: Parameters<RouteHost['webhook']>[2] = ({ params }) =>
    timingSafeEqual(digest(params), wanted);
  const handle: Parameters<RouteHost['webhook']>[1] = async ({ body }) => {
    onCalled();
    if (body === undefined) {
      const reason = 'a webhook call had more than 1 MB';
      log.error({ reason }, 'signal.message-lost');
      await onLost(reason);
      return { status: 413 };
    }
    const raw = Buffer.from(body).toString();
    try {
      await take(raw);
      return { status: 200 };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log.error({ reason }, 'signal.message-lost');
      await onLost(reason, raw);
      return { status: 503 };
    }
  };
  routes.webhook('webhook', handle, knowsSecret);
}

/** Hashes the text to a fixed length, so that the comparison takes the same time for every guess. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
