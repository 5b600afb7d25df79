import type { ModelPrices, Usage } from '#contracts/model.ts';
import { costOf } from '../cost.ts';
import { noPrices } from '../prices.ts';

/** Counts as the servers send them; each may be absent or nonsense. */
export type WireUsage = {
  readonly prompt_tokens?: unknown;
  readonly completion_tokens?: unknown;
  readonly prompt_tokens_details?: {
    readonly cached_tokens?: unknown;
    readonly cache_write_tokens?: unknown;
  } | null;
  /** DeepSeek's name of the cached ones. */
  readonly prompt_cache_hit_tokens?: unknown;
  /** OpenRouter's charge, dollars. */
  readonly cost?: unknown;
};

/** llama.cpp's own counts, which it sends without being asked for usage. */
export type WireTimings = {
  readonly prompt_n?: unknown;
  readonly cache_n?: unknown;
  readonly predicted_n?: unknown;
};

/** Tokens as the server counted them; undefined when it did not count both the prompt and the answer. */
export function countedUsage(
  usage: WireUsage | undefined,
  timings?: WireTimings | undefined,
): Usage | undefined {
  if (usage && isCount(usage.prompt_tokens) && isCount(usage.completion_tokens)) return usageOf(usage);
  return timings && isCount(timings.prompt_n) && isCount(timings.predicted_n)
    ? usageOfTimings(timings)
    : undefined;
}

/** The prompt's count includes what came from the cache, or went to it. */
function usageOf(wire: WireUsage): Usage {
  const details = wire.prompt_tokens_details;
  const prompt = countIn(wire.prompt_tokens);
  const cacheReadTokens = Math.min(
    prompt,
    countIn(details?.cached_tokens) || countIn(wire.prompt_cache_hit_tokens),
  );
  const cacheWriteTokens = Math.min(prompt - cacheReadTokens, countIn(details?.cache_write_tokens));
  return {
    inputTokens: prompt - cacheReadTokens - cacheWriteTokens,
    outputTokens: countIn(wire.completion_tokens),
    cacheReadTokens,
    cacheWriteTokens,
  };
}

function usageOfTimings({ prompt_n, cache_n, predicted_n }: WireTimings): Usage {
  return {
    inputTokens: countIn(prompt_n),
    outputTokens: countIn(predicted_n),
    cacheReadTokens: countIn(cache_n),
    cacheWriteTokens: 0,
  };
}

/** Micro-dollars: by the prices, or as the server charged when no price is known. */
export function chargeOf(usage: Usage, wire: WireUsage | undefined, prices: ModelPrices): number {
  const isPriced = prices.input !== noPrices.input || prices.output !== noPrices.output;
  const told = wire?.cost;
  if (isPriced || typeof told !== 'number' || !(told > 0) || told > 10_000) return costOf(usage, prices);
  return Math.ceil(told * 1_000_000);
}

function countIn(value: unknown): number {
  return isCount(value) ? value : 0;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
