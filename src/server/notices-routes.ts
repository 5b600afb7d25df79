import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { AnswerResult, ShownAlert, ShownQuestion } from '#contracts/owner-alert.ts';
import { serveCall } from './api-call.ts';
import { refuse } from './request-auth.ts';

export type OwnerNotices = {
  /** Returns the open notices that weren't dismissed, newest first. */
  shown(): Promise<readonly ShownAlert[]>;
  /** Returns false when there is no such notice. */
  dismiss(id: string): Promise<boolean>;
  /** Returns the open questions, newest first. */
  questions(): Promise<readonly ShownQuestion[]>;
  /** Answers a question as the owner; a later answer changes nothing and says so. */
  answer(id: string, verdict: 'approve' | 'deny'): Promise<AnswerResult>;
};

const id = z.string().min(1).max(100);
const verdict = z.enum(['approve', 'deny']);

const list = {
  method: 'GET',
  path: '/api/notices',
  summary: "Lists the owner's open notices and questions, newest first",
  answer: z.object({
    notices: z
      .array(
        z.object({
          id: z.string(),
          kind: z.string(),
          text: z.string(),
          count: z.int(),
          since: z.int(),
          lastAt: z.int(),
        }),
      )
      .readonly(),
    questions: z
      .array(
        z.object({
          id: z.string(),
          text: z.string(),
          since: z.int(),
          choices: z.array(z.object({ verdict, label: z.string() })).readonly(),
        }),
      )
      .readonly(),
  }),
} as const;

const dismiss = {
  method: 'POST',
  path: '/api/notices/dismiss',
  summary: 'Removes a notice from the lists',
  input: z.strictObject({ id }),
  answer: z.object({ status: z.literal('dismissed') }),
  refusals: { 404: ['not_found'] },
} as const;

const answer = {
  method: 'POST',
  path: '/api/notices/answer',
  summary: 'Answers a question as the owner; the first of several answers counts',
  input: z.strictObject({ id, verdict }),
  answer: z.object({
    result: z.enum(['approved', 'denied', 'late', 'foreign', 'unknown']),
    text: z.string(),
  }),
} as const;

/** Serves the owner's notices for the page's banner and the command line. */
export function mountNotices(app: FastifyInstance, notices: OwnerNotices): void {
  serveCall(app, list, async () => ({
    notices: await notices.shown(),
    questions: await notices.questions(),
  }));

  serveCall(app, dismiss, async (notice, { reply }) =>
    (await notices.dismiss(notice.id))
      ? { status: 'dismissed' as const }
      : refuse(reply, { status: 404, code: 'not_found' }),
  );

  serveCall(app, answer, async (given) => notices.answer(given.id, given.verdict));
}
