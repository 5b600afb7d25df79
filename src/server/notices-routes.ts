import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { ShownAlert } from '#contracts/owner-alert.ts';
import type { AnswerResult, ShownQuestion } from '#contracts/owner-question.ts';

export type OwnerNotices = {
  /** Open notices that weren't dismissed, newest first. */
  shown(): Promise<readonly ShownAlert[]>;
  /** False when there is no such notice. */
  dismiss(id: string): Promise<boolean>;
  /** Open questions, newest first. */
  questions(): Promise<readonly ShownQuestion[]>;
  /** Answers a question as the owner; a later answer changes nothing and says so. */
  answer(id: string, verdict: 'approve' | 'deny'): Promise<AnswerResult>;
};

const dismissal = z.strictObject({ id: z.string().min(1).max(100) });

const answerSchema = z.strictObject({ id: z.string().min(1).max(100), verdict: z.enum(['approve', 'deny']) });

/** Serves the owner's notices for the banner of the page and the command line. */
export function mountNotices(app: FastifyInstance, notices: OwnerNotices): void {
  app.get('/api/notices', { config: { access: 'signed-in' } }, async () => ({
    notices: await notices.shown(),
    questions: await notices.questions(),
  }));

  app.post('/api/notices/dismiss', { config: { access: 'signed-in' } }, async (request, reply) => {
    const { data } = dismissal.safeParse(request.body);
    if (data === undefined) return reply.code(400).send({ error: { code: 'invalid_request' } });
    if (await notices.dismiss(data.id)) return { status: 'dismissed' };
    return reply.code(404).send({ error: { code: 'not_found' } });
  });

  app.post('/api/notices/answer', { config: { access: 'signed-in' } }, async (request, reply) => {
    const { data } = answerSchema.safeParse(request.body);
    if (data === undefined) return reply.code(400).send({ error: { code: 'invalid_request' } });
    return notices.answer(data.id, data.verdict);
  });
}
