import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { NativeCommand } from '#contracts/channel-abilities.ts';
import type { ReloadResult } from '../config/live-settings.ts';
import { serveCall } from './api-call.ts';
import type { GatewayStatus, Readiness } from './gateway-status.ts';
import { readyAnswer } from './readiness.ts';

export type StatusDeps = {
  readiness(): Promise<Readiness>;
  status(): Promise<GatewayStatus>;
  readonly commands?: readonly NativeCommand[];
  metrics?(): Promise<string>;
  reload?(): Promise<ReloadResult>;
};

const names = z.array(z.string()).readonly();

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
    missing: names.exactOptional(),
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

const status = {
  method: 'GET',
  path: '/api/status',
  summary: 'Shows the version, model, channels and current problems',
  answer: z.object({
    version: z.string(),
    startedAt: z.int(),
    model: z.object({ name: z.string(), isDemo: z.boolean() }),
    channels: z
      .array(
        z.object({
          id: z.string(),
          state: z.enum(['on', 'off', 'standby', 'trouble']),
          detail: z.string(),
          since: z.int().exactOptional(),
          nextTryAt: z.int().exactOptional(),
        }),
      )
      .readonly(),
    problems: z
      .array(z.object({ id: z.string(), text: z.string() }))
      .readonly()
      .exactOptional(),
  }),
} as const;

const reloading = {
  method: 'POST',
  path: '/api/reload',
  summary: 'Reloads the configuration, and applies what it can without a restart',
  answer: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('applied'), applied: names, needsRestart: names, pid: z.int() }),
    z.object({ kind: z.literal('refused'), problem: z.string(), pid: z.int() }),
  ]),
} as const;

const commandList = {
  method: 'GET',
  path: '/api/commands',
  summary: 'Lists the chat commands',
  answer: z.object({
    commands: z
      .array(z.object({ name: z.string(), description: z.string(), argument: z.string().exactOptional() }))
      .readonly(),
  }),
} as const;

const figures = {
  method: 'GET',
  path: '/metrics',
  summary: 'Metrics for Prometheus',
  answer: z.string(),
  answerType: 'text/plain; version=0.0.4; charset=utf-8',
} as const;

/** Serves health, readiness, status, reload, commands and metrics; all but the first two require a sign-in. */
export function mountStatus(app: FastifyInstance, deps: StatusDeps): void {
  serveCall(app, healthz, async () => ({ status: 'ok' as const }));

  serveCall(app, readyz, async (_, { request, reply }) => {
    const { code, body } = readyAnswer(await deps.readiness(), request.url);
    return reply.code(code).send(body);
  });

  serveCall(app, status, async () => deps.status());

  const { metrics, reload } = deps;
  if (reload !== undefined)
    serveCall(app, reloading, async () => ({ ...(await reload.call(deps)), pid: process.pid }));

  serveCall(app, commandList, async () => ({ commands: deps.commands ?? [] }));

  if (metrics === undefined) return;
  serveCall(app, figures, async (_, { reply }) =>
    reply.type(figures.answerType).send(await metrics.call(deps)),
  );
}
