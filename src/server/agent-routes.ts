import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import { hasCode } from '#contracts/errors.ts';
import type { AgentService } from '../service/agent-service.ts';
import { waitAnswerOf } from './wait-answer.ts';

/** The longest message that a program may send, UTF-16 units. */
export const maxMessageChars = 16_000;

const name = z.string().min(1).max(2048);
const sending = z.strictObject({
  message: z.string().min(1).max(maxMessageChars),
  session: name.exactOptional(),
  agent: name.exactOptional(),
  key: z.string().min(1).max(200).exactOptional(),
});
const waiting = z.strictObject({
  runId: z.string().min(1).max(200),
  timeoutMs: z.coerce.number().int().min(0).max(600_000).default(30_000),
});

/** Spec 15: `agent` answers at once with the run id that it has reserved, `agent.wait` tells what became of it. */
export function mountAgent(app: FastifyInstance, agents: AgentService): void {
  const access = { config: { access: 'signed-in' } } as const;
  app.post('/api/agent', access, async (request, reply) => {
    const { data } = sending.safeParse(request.body);
    if (data === undefined) return refuse(reply, 'invalid_request', 'The request is not valid.');
    try {
      return await agents.send(data);
    } catch (error) {
      if (!hasCode(error, 'invalid_input')) throw error;
      return refuse(reply, 'invalid_input', error instanceof Error ? error.message : '');
    }
  });

  app.get('/api/agent/wait', access, async (request, reply) => {
    const { data } = waiting.safeParse(request.query);
    if (data === undefined) return refuse(reply, 'invalid_request', 'The request is not valid.');
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    const result = await agents.wait(data.runId, data.timeoutMs, gone.signal);
    if (result.kind === 'unknown') return reply.code(404).send({ error: { code: 'not_found' } });
    return waitAnswerOf(result);
  });
}

function refuse(reply: FastifyReply, code: string, text: string): FastifyReply {
  return reply.code(400).send({ error: { code, text } });
}
