import type { FastifyInstance } from 'fastify';
import type { NativeCommand } from '#contracts/channel-abilities.ts';
import type { ReloadResult } from '../config/live-settings.ts';
import type { GatewayStatus, Readiness } from './gateway-status.ts';
import { readyAnswer } from './readiness.ts';

export type StatusDeps = {
  readiness(): Promise<Readiness>;
  status(): Promise<GatewayStatus>;
  readonly commands?: readonly NativeCommand[];
  metrics?(): Promise<string>;
  reload?(): Promise<ReloadResult>;
};

/** `/healthz` lives as long as the process; `/readyz` names what is missing, channels included; the rest needs sign-in. */
export function mountStatus(app: FastifyInstance, deps: StatusDeps): void {
  app.get('/healthz', { config: { access: 'public' } }, async () => ({ status: 'ok' }));

  app.get('/readyz', { config: { access: 'public' } }, async (request, reply) => {
    const { code, body } = readyAnswer(await deps.readiness(), request.url);
    return reply.code(code).send(body);
  });

  app.get('/api/status', { config: { access: 'signed-in' } }, async () => deps.status());

  const { metrics, reload } = deps;
  if (reload !== undefined)
    app.post('/api/reload', { config: { access: 'signed-in' } }, async () => ({
      ...(await reload.call(deps)),
      pid: process.pid,
    }));

  app.get('/api/commands', { config: { access: 'signed-in' } }, async () => ({
    commands: deps.commands ?? [],
  }));

  if (metrics === undefined) return;
  app.get('/metrics', { config: { access: 'signed-in' } }, async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await metrics.call(deps)),
  );
}
