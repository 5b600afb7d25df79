import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import { cleanText } from '#channel-kit/clean-text.ts';
import { maxTextLength } from '#channel-kit/client-frames.ts';
import type { QueuedItem } from '../store/reads/read-waiting-items.ts';
import { serveCall } from './api-call.ts';
import { refuse } from './request-auth.ts';

/** The owner's view of the waiting messages of all conversations, and changes to them. */
export type OwnerQueue = {
  /** Lists them by conversation, next first. */
  waiting(): Promise<readonly QueuedItem[]>;
  /** Cancels or promotes a message. `id`: its id or the beginning of it. Safe to repeat. */
  change(verb: 'cancel' | 'promote', id: string): Promise<QueueChange>;
  /** Rewords a message; one that a run has already taken is corrected. Safe to repeat. */
  edit(id: string, text: string): Promise<QueueChange>;
  /** Returns the complete text of a waiting message; undefined once it is no longer waiting. */
  textOf(id: string): Promise<string | undefined>;
};

/** Result of a change to a waiting message. */
export type QueueChange =
  | {
      readonly kind: 'done';
      readonly item: {
        readonly id: string;
        readonly laneKey: string;
        readonly number: number;
        /** Absent when an edit becomes a correction. */
        readonly excerpt?: string;
        /** The change's result, for people. */
        readonly text: string;
      };
    }
  | { readonly kind: 'not-found' }
  /** `text` says why. */
  | { readonly kind: 'not-possible'; readonly text: string };

/** A waiting message in lists. */
export const waitingItem = z.object({
  id: z.string(),
  number: z.int(),
  kind: z.enum(['message', 'correction', 'command']),
  state: z.enum(['waiting', 'held', 'fetching']),
  sender: z.string(),
  senderName: z.string(),
  excerpt: z.string(),
  files: z.int(),
  isAhead: z.boolean(),
  ageMs: z.int(),
});

const list = {
  method: 'GET',
  path: '/api/queue',
  summary: 'Lists the waiting messages of all conversations, next first',
  answer: z.object({
    items: z
      .array(
        waitingItem.extend({
          laneKey: z.string(),
          position: z.int().describe('In its conversation, from 1, which is taken next'),
          mode: z.string(),
        }),
      )
      .readonly(),
  }),
} as const;

const changing = {
  method: 'POST',
  input: z.strictObject({ id: z.string().min(1).max(100).describe('As listed, or the beginning of it') }),
  answer: z.object({
    id: z.string(),
    laneKey: z.string(),
    number: z.int(),
    excerpt: z.string().exactOptional().describe('Absent when an edit becomes a correction'),
    text: z.string().describe('The result, for people'),
  }),
  refusals: { 404: ['not_found'], 409: ['not_possible'] },
} as const;

const changes = {
  cancel: {
    ...changing,
    path: '/api/queue/cancel',
    summary: 'Cancels a waiting message; its sender is notified',
  },
  promote: {
    ...changing,
    path: '/api/queue/promote',
    summary: 'Moves a waiting message to the front of its conversation',
  },
} as const;

const edit = {
  ...changing,
  path: '/api/queue/edit',
  summary: "Rewords a waiting message, in its sender's name and with its sender's permissions",
  input: z.strictObject({
    ...changing.input.shape,
    text: z.string().max(maxTextLength).transform(cleanText).pipe(z.string().trim().min(1)),
  }),
} as const;

const whole = {
  method: 'GET',
  path: '/api/queue/text',
  summary: 'Shows the complete text of a waiting message',
  input: z.object({ id: z.string().min(1).max(100).describe('As listed') }),
  answer: z.object({ text: z.string() }),
  refusals: { 404: ['not_found'] },
} as const;

/** Serves the same actions as `parley queue` on the command line. */
export function mountQueue(app: FastifyInstance, queue: OwnerQueue): void {
  serveCall(app, list, async () => ({ items: await queue.waiting() }));

  for (const verb of ['cancel', 'promote'] as const)
    serveCall(app, changes[verb], async ({ id }, { reply }) => answerOf(await queue.change(verb, id), reply));

  serveCall(app, edit, async ({ id, text }, { reply }) => answerOf(await queue.edit(id, text), reply));

  serveCall(app, whole, async ({ id }, { reply }) => {
    const text = await queue.textOf(id);
    return text === undefined ? refuse(reply, { status: 404, code: 'not_found' }) : { text };
  });
}

function answerOf(change: QueueChange, reply: FastifyReply) {
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
}
