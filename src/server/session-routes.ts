import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Store } from '../store/base/command.ts';
import { findSession, readSessionReports } from '../store/reads/read-sessions.ts';
import { readTranscriptPage } from '../store/reads/read-transcript.ts';
import { serveCall } from './api-call.ts';
import { refuse } from './request-auth.ts';

/** Number of conversations that the page lists. */
const listed = 50;

const report = {
  id: z.string(),
  key: z.string(),
  agentId: z.string(),
  title: z.string().optional(),
  messageCount: z.int(),
  cost: z.int(),
  createdAt: z.int(),
  updatedAt: z.int(),
  tokens: z.object({ prompt: z.int(), completion: z.int() }),
  isSummarised: z.boolean(),
  endedAt: z.int().optional(),
  lastSender: z
    .object({ network: z.string(), ref: z.string(), name: z.string() })
    .optional()
    .describe('Who wrote last; the name is their own choice'),
};

const list = {
  method: 'GET',
  path: '/api/sessions',
  summary: `Lists the ${listed} most recently used conversations, with tokens and cost (micro-dollars)`,
  answer: z.object({ sessions: z.array(z.object(report)).readonly() }),
} as const;

const id = z.string().min(1).max(2048).describe("A session's id or the beginning of it, or a session key");
const refusals = { 404: ['not_found'], 409: ['ambiguous'] };

const show = {
  method: 'GET',
  path: '/api/sessions/show',
  summary: 'Shows one conversation, with its spending by purpose and its summary',
  input: z.object({ id }),
  answer: z.object({
    ...report,
    usage: z
      .array(
        z.object({
          purpose: z.string(),
          calls: z.int(),
          promptTokens: z.int(),
          completionTokens: z.int(),
          cost: z.int(),
        }),
      )
      .readonly(),
    summary: z.string().optional(),
  }),
  refusals,
} as const;

const messages = {
  method: 'GET',
  path: '/api/sessions/messages',
  summary: 'Lists messages of a conversation, newest last, including those that a summary replaces',
  input: z.object({
    id,
    before: z.coerce.number().int().exactOptional().describe('A position: only messages before it'),
    limit: z.coerce.number().int().min(1).max(200).default(50),
  }),
  answer: z.object({
    messages: z
      .array(
        z.object({
          id: z.string(),
          position: z.int(),
          role: z.enum(['user', 'assistant', 'tool', 'system']),
          parts: z.array(z.object({ type: z.string(), data: z.looseObject({}) })).readonly(),
          note: z.string().exactOptional(),
          model: z.string().exactOptional(),
          unsendable: z.string().exactOptional(),
          isSummary: z.literal(true).exactOptional(),
          createdAt: z.int(),
        }),
      )
      .readonly(),
  }),
  refusals,
} as const;

/** Serves the list of conversations, most recently used first, and single ones, as `parley sessions` does. */
export function mountSessions(
  app: FastifyInstance,
  { store }: { readonly store: Pick<Store, 'read'> },
): void {
  serveCall(app, list, async () => ({ sessions: await store.read(readSessionReports, { limit: listed }) }));

  serveCall(app, show, async ({ id: idOrKey }, { reply }) => {
    const found = await store.read(findSession, { idOrKey });
    return found.kind === 'found' ? found.session : refuse(reply, notFound[found.kind]);
  });

  serveCall(app, messages, async ({ id: idOrKey, ...page }, { reply }) => {
    const found = await store.read(findSession, { idOrKey });
    if (found.kind !== 'found') return refuse(reply, notFound[found.kind]);
    return { messages: await store.read(readTranscriptPage, { sessionId: found.session.id, ...page }) };
  });
}

const notFound = {
  none: { status: 404, code: 'not_found' },
  several: { status: 409, code: 'ambiguous' },
} as const;
