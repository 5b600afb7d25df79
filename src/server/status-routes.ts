import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { serveCall } from './api-call.ts';
import { type Readiness, readyAnswer } from './readiness.ts';

export type StatusDeps = {
  readiness(): Promise<Readiness>;
  metrics?(): Promise<string>;
};

const healthz = {
  method: 'GET',
  path: '/healthz',
  summary: 'Answers as long as the process is alive',
  access: 'public',
  answer: z.object({ status: z.literal('ok') }),
} as const;

const readyz = {
  method: 'GET',
  path: '/readyz',
  summary: 'Names what the gateway lacks, including channels; with 503 while it lacks something',
  access: 'public',
  input: z.object({ verbose: z.string().exactOptional().describe('Lists all components') }),
  answer: z.object({
    status: z.enum(['ready', 'not ready']),
    missing: z.array(z.string()).readonly().exactOptional(),
    components: z
      .array(
        z.object({
          name: z.string(),
          state: z.enum(['ok', 'down']),
          reason: z.string().exactOptional(),
          since: z.string().exactOptional(),
          nextTryAt: z.string().exactOptional(),
        }),
      )
      .readonly()
      .exactOptional(),
  }),
  alsoWith: [503],
} as const;

const figures = {
  method: 'GET',
  path: '/metrics',
  summary: 'Metrics for Prometheus',
  access: 'owner',
  answer: z.string(),
  answerType: 'text/plain; version=0.0.4; charset=utf-8',
} as const;

/** Serves health and readiness to anybody, and metrics to the owner. */
export function mountStatus(app: FastifyInstance, deps: StatusDeps): void {
  serveCall(app, healthz, async () => ({ status: 'ok' as const }));

  serveCall(app, readyz, async (_, { request, reply }) => {
    const { code, body } = readyAnswer(await deps.readiness(), request.url);
    return reply.code(code).send(body);
  });

  const { metrics } = deps;
  if (metrics === undefined) return;
  serveCall(app, figures, async (_, { reply }) =>
    reply.type(figures.answerType).send(await metrics.call(deps)),
  );
}
