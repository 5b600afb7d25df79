import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { OperatorResult, UndeliveredPart } from '../store/delivery/operator-actions.ts';

/** The owner's questions about single messages, and actions on those that may not have arrived. */
export type OwnerMessages = {
  /** Tells what became of the message, as lines of text; undefined when nothing is known of the id. */
  why(id: string): Promise<string | undefined>;
  /** Messages that are not delivered, newest first. */
  undelivered(): Promise<readonly UndeliveredPart[]>;
  /** Sends one again, which may then arrive twice. */
  retry(key: string): Promise<OperatorResult>;
  drop(key: string): Promise<OperatorResult>;
};

const id = z.string().min(1).max(300);
const subject = z.object({ id });
const part = z.strictObject({ key: id });
const signedIn = { config: { access: 'signed-in' } } as const;

/** Serves the account of a message, and the list of those that may not have arrived with its two actions. */
export function mountMessages(app: FastifyInstance, messages: OwnerMessages): void {
  app.get('/api/why', signedIn, async (request, reply) => {
    const { data } = subject.safeParse(request.query);
    if (data === undefined) return reply.code(400).send({ error: { code: 'invalid_request' } });
    const text = await messages.why(data.id);
    if (text === undefined) return reply.code(404).send({ error: { code: 'not_found' } });
    return { text };
  });

  app.get('/api/outbox', signedIn, async () => ({ parts: await messages.undelivered() }));

  for (const action of ['retry', 'drop'] as const) {
    app.post(`/api/outbox/${action}`, signedIn, async (request, reply) => {
      const { data } = part.safeParse(request.body);
      if (data === undefined) return reply.code(400).send({ error: { code: 'invalid_request' } });
      switch (await messages[action](data.key)) {
        case 'done':
          return { status: 'done' };
        case 'not-found':
          return reply.code(404).send({ error: { code: 'not_found' } });
        default:
          return reply.code(409).send({ error: { code: 'not_possible' } });
      }
    });
  }
}
