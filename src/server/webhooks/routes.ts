/**
 * `POST /webhooks/<name>`: other systems report something. A delivery that isn't proven gets the same answer as one to an
 * address that doesn't exist, and nothing of it is stored.
 */
import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { WebhookSettings } from '../../config/webhook-schema.ts';
import type { Webhooks } from '../../service/webhooks.ts';
import { renderDelivery } from './render-delivery.ts';
import { type Delivery, type DeliveryVerdict, knowsSecret, verifyDelivery } from './verify-delivery.ts';

/** The webhooks, and where their deliveries go. */
export type WebhookRouteDeps = {
  readonly hooks: Readonly<Record<string, WebhookSettings>>;
  readonly webhooks: Webhooks;
  readonly defaultAgent: string;
  readonly clock: Clock;
  readonly log: Log;
};

const maxBodyBytes = 256 * 1024;

/** Nobody knows it, so that a delivery to an address that doesn't exist is judged like any other. */
const unknownSecret = randomBytes(32).toString('hex');

/** Adds the route. */
export function mountWebhooks(app: FastifyInstance, deps: WebhookRouteDeps): void {
  const { hooks, clock, log } = deps;
  const nameOf = ({ params }: FastifyRequest) => (params as { readonly name: string }).name;
  const hookOf = (name: string) => (Object.hasOwn(hooks, name) ? hooks[name] : undefined);
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    const options = { parseAs: 'buffer', bodyLimit: maxBodyBytes } as const;
    scope.addContentTypeParser('*', options, (_request, body, done) => done(null, body));
    // Without the secret, no body is read.
    scope.addHook('onRequest', async (request, reply) => {
      const { signature = 'none', secret } = hookOf(nameOf(request)) ?? {};
      if (signature !== 'none' || knowsSecret(secret?.reveal() ?? unknownSecret, request.headers)) return;
      return reply.code(401).send(refusal('wrong_secret'));
    });
    scope.post(
      '/webhooks/:name',
      { bodyLimit: maxBodyBytes, config: { access: 'webhook', call: 'none' } },
      async (request, reply) => {
        const name = nameOf(request);
        const hook = hookOf(name);
        const { headers } = request;
        const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
        const verdict = judge(hook, { headers, body, now: clock.now() });
        if (hook === undefined || verdict.kind === 'refused') {
          const reason = verdict.kind === 'refused' ? verdict.reason : 'wrong_secret';
          log.info({ hook: hook && name, reason }, 'webhook.refused');
          return reply.code(401).send(refusal(reason));
        }
        // GitHub only asks whether the address works.
        if (hook.signature === 'github' && headers['x-github-event'] === 'ping')
          return reply.code(200).send({ status: 'ignored' });
        const status = await deps.webhooks.accept(deliveryOf(name, hook, { body, verdict, deps }));
        return reply.code(status === 'accepted' ? 202 : 200).send({ status });
      },
    );
  });
}

function judge(hook: WebhookSettings | undefined, delivery: Delivery): DeliveryVerdict {
  return verifyDelivery(hook?.signature ?? 'none', hook?.secret.reveal() ?? unknownSecret, delivery);
}

function refusal(code: string) {
  return { error: { code } };
}

function deliveryOf(
  name: string,
  { agent, prompt, template }: WebhookSettings,
  {
    body,
    verdict,
    deps,
  }: {
    readonly body: Buffer;
    readonly verdict: Extract<DeliveryVerdict, { readonly kind: 'genuine' }>;
    readonly deps: WebhookRouteDeps;
  },
) {
  const { id, mayRecur } = verdict;
  return {
    ...{ hook: name, id, mayRecur },
    agent: agent ?? deps.defaultAgent,
    prompt: prompt ?? `The webhook ${name} reports this. Say in a few sentences what happened.`,
    text: renderDelivery(body, template),
  };
}
