import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { QueuedItem } from '../store/reads/read-waiting-items.ts';
import { serveCall } from './api-call.ts';
import { refuse } from './request-auth.ts';

/** The owner's look at what waits in all conversations, and changes of it. */
export type OwnerQueue = {
  /** Conversation by conversation, next first. */
  waiting(): Promise<readonly QueuedItem[]>;
  /** `id`: of the message, or its beginning. Safe to repeat. */
  change(verb: 'cancel' | 'promote', id: string): Promise<QueueChange>;
};

export type QueueChange =
  | {
      readonly kind: 'done';
      readonly item: {
        readonly id: string;
        readonly laneKey: string;
        readonly number: number;
        readonly excerpt: string;
      };
    }
  | { readonly kind: 'not-found' }
  /** `text` says why. */
  | { readonly kind: 'not-possible'; readonly text: string };

const list = {
  method: 'GET',
  path: '/api/queue',
  summary: 'Lists the waiting messages of all conversations, next first',
  answer: z.object({
    items: z
      .array(
        z.object({
          id: z.string(),
          laneKey: z.string(),
          position: z.int().describe('In its conversation, from 1, which is taken next'),
          mode: z.string(),
          number: z.int(),
          kind: z.enum(['message', 'correction', 'command']),
          state: z.enum(['waiting', 'held', 'fetching']),
          sender: z.string(),
          senderName: z.string(),
          excerpt: z.string(),
          files: z.int(),
          isAhead: z.boolean(),
          ageMs: z.int(),
        }),
      )
      .readonly(),
  }),
} as const;

const changing = {
  method: 'POST',
  input: z.strictObject({ id: z.string().min(1).max(100).describe('As the list has it, or its beginning') }),
  answer: z.object({ id: z.string(), laneKey: z.string(), number: z.int(), excerpt: z.string() }),
  refusals: { 404: ['not_found'], 409: ['not_possible'] },
} as const;

const changes = {
  cancel: {
    ...changing,
    path: '/api/queue/cancel',
    summary: 'Cancels a waiting message; its sender is told',
  },
  promote: {
    ...changing,
    path: '/api/queue/promote',
    summary: 'Moves a waiting message to the front of its conversation',
  },
} as const;

/** Serves what `parley queue` does on the command line. */
export function mountQueue(app: FastifyInstance, queue: OwnerQueue): void {
  serveCall(app, list, async () => ({ items: await queue.waiting() }));

  for (const verb of ['cancel', 'promote'] as const) {
    serveCall(app, changes[verb], async ({ id }, { reply }) => {
      const change = await queue.change(verb, id);
      switch (change.kind) {
        case 'done':
          return change.item;
        case 'not-found':
          return refuse(reply, { status: 404, code: 'not_found' });
        case 'not-possible':
          return refuse(reply, { status: 409, code: 'not_possible', text: change.text });
        default:
          return change satisfies never;
      }
    });
  }
}
