import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { OperatorResult, UndeliveredPart } from '../store/delivery/operator-actions.ts';
import { serveCall } from './api-call.ts';
import { refuse } from './request-auth.ts';

/** The owner's view of single messages, and actions on those that may not have arrived. */
export type OwnerMessages = {
  /** Returns the message's trace as lines of text; undefined when the id is unknown. */
  why(id: string): Promise<string | undefined>;
  /** Lists undelivered messages, newest first. */
  undelivered(): Promise<readonly UndeliveredPart[]>;
  /** Sends a message again, which may then arrive twice. */
  retry(key: string): Promise<OperatorResult>;
  drop(key: string): Promise<OperatorResult>;
};

const id = z.string().min(1).max(300);

const why = {
  method: 'GET',
  path: '/api/why',
  summary: 'Says what became of a message, as lines of text',
  input: z.object({ id: id.describe('Any id that Parley or the network gave it') }),
  answer: z.object({ text: z.string() }),
  refusals: { 404: ['not_found'] },
} as const;

const outbox = {
  method: 'GET',
  path: '/api/outbox',
  summary: 'Lists undelivered messages, newest first',
  answer: z.object({
    parts: z
      .array(
        z.object({
          key: z.string(),
          conversation: z.string(),
          state: z.string(),
          attempts: z.int(),
          problem: z.string().optional(),
          createdAt: z.int(),
          excerpt: z.string(),
        }),
      )
      .readonly(),
  }),
} as const;

const action = {
  method: 'POST',
  input: z.strictObject({ key: id.describe('Of the part, as listed') }),
  answer: z.object({ status: z.literal('done') }),
  refusals: { 404: ['not_found'], 409: ['not_possible'] },
} as const;

const actions = {
  retry: { ...action, path: '/api/outbox/retry', summary: 'Sends a part again; it may then arrive twice' },
  drop: { ...action, path: '/api/outbox/drop', summary: 'Gives up on a part' },
} as const;

/** Serves the trace of a message, and the list of undelivered ones with its two actions. */
export function mountMessages(app: FastifyInstance, messages: OwnerMessages): void {
  serveCall(app, why, async ({ id: subject }, { reply }) => {
    const text = await messages.why(subject);
    return text === undefined ? refuse(reply, { status: 404, code: 'not_found' }) : { text };
  });

  serveCall(app, outbox, async () => ({ parts: await messages.undelivered() }));

  for (const name of ['retry', 'drop'] as const) {
    serveCall(app, actions[name], async ({ key }, { reply }) => {
      switch (await messages[name](key)) {
        case 'done':
          return { status: 'done' as const };
        case 'not-found':
          return refuse(reply, { status: 404, code: 'not_found' });
        default:
          return refuse(reply, { status: 409, code: 'not_possible' });
      }
    });
  }
}
