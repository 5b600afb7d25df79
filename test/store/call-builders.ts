import type { CallRate } from '../../src/contracts/call-ledger.ts';
import type { CacheMiss } from '../../src/contracts/model.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { callIdOf, type ModelCallEnd } from '../../src/store/money/model-call.ts';

/** A model whose calls cost at most 2 micro-dollars per token of the prompt and 10 per token of the answer. */
export const rate: CallRate = {
  provider: 'test',
  model: 'test-model',
  input: 2_000_000,
  output: 10_000_000,
  promptTokens: 200_000,
  answerTokens: 1_000,
};

/** Returns the end of the claimed run's first model call, with its usage and cost. */
export function counted(
  { epoch }: Pick<ClaimedRun, 'epoch'>,
  over: {
    readonly cost?: number;
    readonly model?: string;
    readonly cacheReadTokens?: number;
    readonly latencyMs?: number;
    readonly withoutTools?: true;
    readonly cacheMiss?: CacheMiss;
  } = {},
): ModelCallEnd {
  const {
    cost = 100,
    model = 'test-model',
    cacheReadTokens = 0,
    latencyMs = 56,
    withoutTools,
    cacheMiss,
  } = over;
  const usage = { inputTokens: 120, outputTokens: 30, cacheReadTokens, cacheWriteTokens: 0 };
  const told = { ...(withoutTools && { withoutTools }), ...(cacheMiss && { cacheMiss }) };
  return { id: callIdOf(epoch, 1), latencyMs, end: { state: 'settled', usage, cost, model, ...told } };
}
