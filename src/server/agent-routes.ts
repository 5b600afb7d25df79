import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { hasCode } from '#contracts/errors.ts';
import type { AgentService } from '../service/agent-service.ts';
import { serveCall } from './api-call.ts';
import { refuse } from './request-auth.ts';
import { waitAnswer, waitAnswerOf } from './wait-answer.ts';

/** The longest message that a program may send, UTF-16 units. */
export const maxMessageChars = 16_000;

const name = z.string().min(1).max(2048);
const runId = z.string().min(1).max(200);

/** Answer to a message from a program; `acceptedAt` is in ms since the epoch. */
export const acceptedMessage = z.object({ runId: z.string(), session: z.string(), acceptedAt: z.int() });

const agent = {
  method: 'POST',
  path: '/api/agent',
  summary:
    'Sends an agent a message; answers once it is stored, with the id of the run that it starts or joins',
  input: z.strictObject({
    message: z.string().min(1).max(maxMessageChars),
    session: name
      .exactOptional()
      .describe('A session key, instead of an agent; absent: your own conversation'),
    agent: name.exactOptional().describe('Absent: the default agent'),
    key: z
      .string()
      .min(1)
      .max(200)
      .exactOptional()
      .describe('Idempotency key: the same message under the same key counts once, with one run id'),
  }),
  answer: acceptedMessage,
  refusals: { 400: ['invalid_input'] },
} as const;

const wait = {
  method: 'GET',
  path: '/api/agent/wait',
  summary: 'Waits until a run has ended, and returns its result; never stops the run',
  input: z.strictObject({
    runId,
    timeoutMs: z.coerce.number().int().min(0).max(600_000).default(30_000),
  }),
  answer: waitAnswer,
  refusals: { 404: ['not_found'] },
} as const;

const cancel = {
  method: 'POST',
  path: '/api/agent/cancel',
  summary:
    'Stops a run and its sub-agents, or cancels its waiting message; with a session: all that programs have there',
  input: z.union([z.strictObject({ runId }), z.strictObject({ session: name })]),
  answer: z.object({ isCancelled: z.boolean().describe('False: there was nothing to stop') }),
  refusals: { 404: ['not_found'] },
} as const;

/** Serves spec 15: `agent` answers immediately with the reserved run id, `agent.wait` returns the run's result. */
export function mountAgent(app: FastifyInstance, agents: AgentService): void {
  serveCall(app, agent, async (message, { reply }) => {
    try {
      return await agents.send(message);
    } catch (error) {
      if (!hasCode(error, 'invalid_input')) throw error;
      const text = error instanceof Error ? error.message : '';
      return refuse(reply, { status: 400, code: 'invalid_input', text });
    }
  });

  serveCall(app, wait, async ({ runId: run, timeoutMs }, { reply }) => {
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    const result = await agents.wait(run, timeoutMs, gone.signal);
    if (result.kind === 'unknown') return refuse(reply, { status: 404, code: 'not_found' });
    return waitAnswerOf(result);
  });

  serveCall(app, cancel, async (what, { reply }) => {
    const isCancelled =
      'runId' in what ? await agents.cancelRun(what.runId) : await agents.cancel(what.session);
    return isCancelled === undefined ? refuse(reply, { status: 404, code: 'not_found' }) : { isCancelled };
  });
}
