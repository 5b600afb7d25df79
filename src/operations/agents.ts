/** Spec 15: `agent` answers immediately with the reserved run id, `agent/wait` returns the run's result. */
import { z } from 'zod';
import { ParleyError } from '#contracts/errors.ts';
import type { Outcome } from '#contracts/outcome.ts';
import type { AgentService } from '../service/agent-service.ts';
import type { RunResult } from '../store/reads/read-run-result.ts';
import { operation, Refusal } from './operation.ts';

export type AgentDeps = { readonly agents: Pick<AgentService, 'send' | 'wait' | 'cancel' | 'cancelRun'> };

/** The longest message that a program may send, UTF-16 units. */
export const maxMessageChars = 16_000;

const name = z.string().min(1).max(2048);
const runId = z.string().min(1).max(200);

/** Accepts a message for an agent. */
export const sendMessage = operation({
  name: 'agent',
  method: 'POST',
  right: 'owner',
  scope: 'operate',
  once: 'own',
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
  answer: z.object({ runId: z.string(), session: z.string(), acceptedAt: z.int() }),
  refusals: ['invalid_input', 'key_reused'],
  run: async ({ agents }: AgentDeps, message) => {
    try {
      return await agents.send(message);
    } catch (error) {
      if (!(error instanceof ParleyError)) throw error;
      if (error.code !== 'invalid_input' && error.code !== 'key_reused') throw error;
      return new Refusal(error.code, error.message);
    }
  },
});

const usage = z.object({
  inputTokens: z.int(),
  outputTokens: z.int(),
  cacheReadTokens: z.int(),
  cacheWriteTokens: z.int(),
  cost: z.int().describe('Micro-dollars'),
});

/** The answer of `agent.wait` (spec 15); times in ms since the epoch. */
const waitAnswer = z.object({
  status: z
    .enum(['ok', 'error', 'timeout'])
    .describe('`timeout`: the wait is over, but the run continues; ask again'),
  startedAt: z.int().exactOptional().describe('Absent while the message is waiting, and if no run took it'),
  endedAt: z.int().exactOptional().describe('Absent while the run continues, even with a later message'),
  error: z.object({ code: z.enum(['run_timeout', 'failed', 'cancelled', 'refused']) }).exactOptional(),
  mergedInto: z.string().exactOptional().describe('The run that took the message, if it is another one'),
  outcome: z.enum(['answered', 'silent', 'merged', 'cancelled', 'refused', 'failed']).exactOptional(),
  reason: z.string().exactOptional().describe('Why it ended this way, as in a trace of the message'),
  text: z.string().exactOptional().describe('The answer; empty when the agent chose to be silent'),
  usage: usage.exactOptional().describe("Sums over the run's model calls"),
});

/** Answers `timeout` while the run continues. */
export const waitForRun = operation({
  name: 'agent/wait',
  method: 'GET',
  right: 'owner',
  scope: 'operate',
  summary: 'Waits until a run has ended, and returns its result; never stops the run',
  input: z.strictObject({
    runId,
    timeoutMs: z.coerce.number().int().min(0).max(600_000).default(30_000),
  }),
  answer: waitAnswer,
  refusals: ['not_found'],
  run: async ({ agents }: AgentDeps, { runId: run, timeoutMs }, { signal }) => {
    const result = await agents.wait(run, timeoutMs, signal);
    return result.kind === 'unknown' ? new Refusal('not_found') : waitAnswerOf(result);
  },
});

/** Stops a run. */
export const cancelRun = operation({
  name: 'agent/cancel',
  method: 'POST',
  right: 'owner',
  scope: 'operate',
  summary:
    'Stops a run and its sub-agents, or cancels its waiting message; with a session: all that programs have there',
  input: z.union([z.strictObject({ runId }), z.strictObject({ session: name })]),
  answer: z.object({ isCancelled: z.boolean().describe('False: there was nothing to stop') }),
  refusals: ['not_found'],
  run: async ({ agents }: AgentDeps, what) => {
    const isCancelled =
      'runId' in what ? await agents.cancelRun(what.runId) : await agents.cancel(what.session);
    return isCancelled === undefined ? new Refusal('not_found') : { isCancelled };
  },
});

/** Converts a run's result for the program that waits for it. */
function waitAnswerOf(result: Exclude<RunResult, { kind: 'unknown' }>): z.infer<typeof waitAnswer> {
  if (result.kind === 'open') {
    const { kind: _, laneKey: _lane, ...facts } = result;
    return { status: 'timeout', ...facts };
  }
  const { kind: _, laneKey: _lane, ...facts } = result;
  const code = errorCodeOf(facts);
  return code === undefined ? { status: 'ok', ...facts } : { status: 'error', error: { code }, ...facts };
}

/** Returns undefined when the agent did what it was asked; silence and one answer to several messages count as that. */
function errorCodeOf({ outcome, reason }: { readonly outcome: Outcome; readonly reason?: string }) {
  switch (outcome) {
    case 'answered':
    case 'silent':
    case 'merged':
      return undefined;
    case 'cancelled':
    case 'refused':
    case 'failed':
      return reason === runTimeout ? 'run_timeout' : outcome;
    default:
      return outcome satisfies never;
  }
}

/** The reason that the loop and a sub-agent's deadline give when their time is over. */
const runTimeout = 'timeout';
