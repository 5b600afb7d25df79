import { z } from 'zod';
import { findSession, readSessionReports } from '../store/reads/read-sessions.ts';
import { readTranscriptPage } from '../store/reads/read-transcript.ts';
import { operation, refuseId, type StoreDeps } from './operation.ts';

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
  isSummarized: z.boolean(),
  endedAt: z.int().optional(),
  lastSender: z
    .object({ network: z.string(), ref: z.string(), name: z.string() })
    .optional()
    .describe('Who wrote last; the name is their own choice'),
};

export const listSessions = operation({
  name: 'sessions',
  method: 'GET',
  right: 'owner',
  scope: 'read',
  summary: 'Lists the most recently used conversations, with tokens and cost (micro-dollars)',
  input: z.object({ limit: z.coerce.number().int().min(1).max(200).default(50) }),
  answer: z.object({ sessions: z.array(z.object(report)).readonly() }),
  run: async ({ store }: StoreDeps, { limit }) => ({
    sessions: await store.read(readSessionReports, { limit }),
  }),
});

const id = z.string().min(1).max(2048).describe("A session's id or the beginning of it, or a session key");
/** Names of a session in refusals. */
export const conversation = { noun: 'conversation', list: 'sessions list' } as const;

export const showSession = operation({
  name: 'sessions/show',
  method: 'GET',
  right: 'owner',
  scope: 'read',
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
  refusals: ['not_found', 'ambiguous'],
  run: async ({ store }: StoreDeps, { id: idOrKey }) => {
    const found = await store.read(findSession, { idOrKey });
    return found.kind === 'found' ? found.session : refuseId(found, idOrKey, conversation);
  },
});

/** A message of the transcript. */
export const transcriptMessage = z.object({
  id: z.string(),
  position: z.int(),
  role: z.enum(['user', 'assistant', 'tool', 'system']),
  parts: z.array(z.object({ type: z.string(), data: z.looseObject({}) })).readonly(),
  note: z.string().exactOptional(),
  model: z.string().exactOptional(),
  unsendable: z.string().exactOptional(),
  isSummary: z.literal(true).exactOptional(),
  createdAt: z.int(),
});

/** Lists messages of a conversation. */
export const listMessages = operation({
  name: 'sessions/messages',
  method: 'GET',
  right: 'owner',
  scope: 'read',
  summary: 'Lists messages of a conversation, newest last, including those that a summary replaces',
  input: z.object({
    id,
    before: z.coerce.number().int().exactOptional().describe('A position: only messages before it'),
    limit: z.coerce.number().int().min(1).max(200).default(50),
  }),
  answer: z.object({ messages: z.array(transcriptMessage).readonly() }),
  refusals: ['not_found', 'ambiguous'],
  run: async ({ store }: StoreDeps, { id: idOrKey, ...page }) => {
    const found = await store.read(findSession, { idOrKey });
    if (found.kind !== 'found') return refuseId(found, idOrKey, conversation);
    return { messages: await store.read(readTranscriptPage, { sessionId: found.session.id, ...page }) };
  },
});
