import { timingSafeEqual } from 'node:crypto';
import type { Intake } from '#contracts/channel.ts';
import { hasCode } from '#contracts/errors.ts';
import type { RouteHost, WebhookAnswer, WebhookRequest } from '#contracts/route-host.ts';
import { batchOf } from './inbound.ts';
import type { Receiver, ReceiverDeps } from './receiver.ts';

/**
 * Receives by webhook. The network repeats each call until it reads 200, so 200 means stored. Whatever arrives while
 * nothing receives is answered with "later".
 */
export function startHook(deps: ReceiverDeps, intake: Intake, routes: RouteHost): Receiver {
  const { config, account, log } = deps;
  const working = new Set<Promise<WebhookAnswer>>();
  let isStopped = false;
  const take = async ({ body }: WebhookRequest): Promise<WebhookAnswer> => {
    if (body === undefined) return { status: 413 };
    try {
      await intake.accept(batchOf([readJson(body)], account));
      return { status: 200 };
    } catch (error) {
      log.warn({ error }, 'example.not-stored');
      // Another process has the account, so whatever arrives now is that process's business.
      if (hasCode(error, 'stale_epoch')) isStopped = true;
      return { status: 503 };
    }
  };
  routes.webhook('hook', async (request) => {
    if (!knowsSecret(request, config.hookSecret)) return { status: 403 };
    if (isStopped) return { status: 503 };
    const taking = take(request);
    working.add(taking);
    return taking.finally(() => working.delete(taking));
  });
  return {
    stop: async () => {
      isStopped = true;
      await Promise.all(working);
    },
  };
}

function knowsSecret({ headers }: WebhookRequest, secret: string): boolean {
  const given = Buffer.from(String(headers['x-hook-secret'] ?? ''));
  const wanted = Buffer.from(secret);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

/** Passes text that isn't JSON on as it is, to be kept as unreadable. */
function readJson(body: Uint8Array): unknown {
  const text = Buffer.from(body).toString();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
