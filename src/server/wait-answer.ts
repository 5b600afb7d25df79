import { z } from 'zod';
import type { Outcome } from '#contracts/outcome.ts';
import type { RunResult } from '../store/reads/read-run-result.ts';

const usage = z.object({
  inputTokens: z.int(),
  outputTokens: z.int(),
  cacheReadTokens: z.int(),
  cacheWriteTokens: z.int(),
  cost: z.int().describe('Micro-dollars'),
});

/** The answer of `agent.wait` (spec 15); times in ms since the epoch. */
export const waitAnswer = z.object({
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

/** Converts a run's result for the program that waits for it. */
export function waitAnswerOf(result: Exclude<RunResult, { kind: 'unknown' }>): z.infer<typeof waitAnswer> {
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
