import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Store } from '../store/base/command.ts';
import { readSessionReports } from '../store/reads/read-session-reports.ts';
import { serveCall } from './api-call.ts';

/** Conversations that the page lists. */
const listed = 50;

const list = {
  method: 'GET',
  path: '/api/sessions',
  summary: `Lists the ${listed} conversations last written in, with tokens and cost (micro-dollars)`,
  answer: z.object({
    sessions: z
      .array(
        z.object({
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
        }),
      )
      .readonly(),
  }),
} as const;

/** Serves the list of conversations, last written in first. */
export function mountSessions(
  app: FastifyInstance,
  { store }: { readonly store: Pick<Store, 'read'> },
): void {
  serveCall(app, list, async () => ({ sessions: await store.read(readSessionReports, { limit: listed }) }));
}
