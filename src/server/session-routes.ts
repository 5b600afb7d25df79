import type { FastifyInstance } from 'fastify';
import type { Store } from '../store/base/command.ts';
import { readSessionReports } from '../store/reads/read-session-reports.ts';

/** Conversations that the page lists. */
const listed = 50;

/** Serves the list of conversations, last written in first. */
export function mountSessions(
  app: FastifyInstance,
  { store }: { readonly store: Pick<Store, 'read'> },
): void {
  app.get('/api/sessions', { config: { access: 'signed-in' } }, async () => ({
    sessions: await store.read(readSessionReports, { limit: listed }),
  }));
}
