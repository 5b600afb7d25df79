import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { ShownAlert } from '#contracts/owner-alert.ts';

export type OwnerNotices = {
  /** Open notices that weren't dismissed, newest first. */
  shown(): Promise<readonly ShownAlert[]>;
  /** False when there is no such notice. */
  dismiss(id: string): Promise<boolean>;
};

const dismissal = z.strictObject({ id: z.string().min(1).max(100) });

/** Serves the owner's notices for the banner of the page and the command line. */
export function mountNotices(app: FastifyInstance, notices: OwnerNotices): void {
  app.get('/api/notices', { config: { access: 'signed-in' } }, async () => ({
    notices: await notices.shown(),
  }));

  app.post('/api/notices/dismiss', { config: { access: 'signed-in' } }, async (request, reply) => {
    const { data } = dismissal.safeParse(request.body);
    if (data === undefined) return reply.code(400).send({ error: { code: 'invalid_request' } });
    if (await notices.dismiss(data.id)) return { status: 'dismissed' };
    return reply.code(404).send({ error: { code: 'not_found' } });
  });
}
