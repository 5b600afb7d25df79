/** Undelivered messages, and the owner's actions on those that may not have arrived. */
import { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { stripText } from '../logging/redaction.ts';
import {
  dropPart,
  type OperatorResult,
  readUndelivered,
  retryPart,
} from '../store/delivery/operator-actions.ts';
import { operation, Refusal, type StoreDeps } from './operation.ts';

const listed = 200;

export const listOutbox = operation({
  name: 'outbox',
  method: 'GET',
  right: 'owner',
  scope: 'read',
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
  run: async ({ store }: StoreDeps) => ({ parts: await store.read(readUndelivered, { limit: listed }) }),
});

const acting = {
  method: 'POST',
  right: 'owner',
  scope: 'operate',
  input: z.strictObject({ key: z.string().min(1).max(300).describe('Of the part, as listed') }),
  answer: z.object({ status: z.literal('done') }),
  refusals: ['not_found', 'not_possible'],
} as const;

export const resendPart = operation({
  ...acting,
  name: 'outbox/retry',
  summary: 'Sends a part again; it may then arrive twice',
  run: async ({ store }: StoreDeps, { key }) => answerOf(key, await store.write(retryPart, { key })),
});

export const giveUpPart = operation({
  ...acting,
  name: 'outbox/drop',
  summary: 'Gives up on a part',
  run: async ({ store }: StoreDeps, { key }) => answerOf(key, await store.write(dropPart, { key })),
});

function answerOf(key: string, result: OperatorResult) {
  if (result === 'done') return { status: 'done' as const };
  const see = `See: ${parleyCommand} outbox list`;
  return result === 'not-found'
    ? new Refusal('not_found', `${stripText(key)} isn't in the outbox. ${see}`)
    : new Refusal('not_possible', `${stripText(key)} can't be changed in its state. ${see}`);
}
