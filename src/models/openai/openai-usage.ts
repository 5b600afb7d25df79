import type { ModelPrices, Usage } from '#contracts/model.ts';
import { costOf, isTokenCount } from '../cost.ts';
import { isPriced } from '../prices.ts';

/** Token counts as servers send them; each may be absent or nonsense. */
export type WireUsage = {
  readonly prompt_tokens?: unknown;
  readonly completion_tokens?: unknown;
  readonly total_tokens?: unknown;
  readonly prompt_tokens_details?: {
    readonly cached_tokens?: unknown;
    readonly cache_write_tokens?: unknown;
  } | null;
  /** DeepSeek's name for the cached tokens. */
  readonly prompt_cache_hit_tokens?: unknown;
  /** OpenRouter's charge, dollars. */
  readonly cost?: unknown;
};

/** llama.cpp's own counts, which it sends even if usage isn't requested. */
export type WireTimings = {
  readonly prompt_n?: unknown;
  readonly cache_n?: unknown;
  readonly predicted_n?: unknown;
};

/** Returns the tokens as the server counted them; undefined unless it counted both the prompt and the answer. */
export function countedUsage(
  usage: WireUsage | undefined,
  timings?: WireTimings | undefined,
): Usage | undefined {
  if (usage && isTokenCount(usage.prompt_tokens) && isTokenCount(usage.completion_tokens))
    return usageOf(usage);
  return timings && isTokenCount(timings.prompt_n) && isTokenCount(timings.predicted_n)
    ? usageOfTimings(timings)
    : undefined;
}

/**
 * Converts the counts. The prompt's count includes tokens read from or written to the cache. Gemini and xAI include the
 * reasoning, which they charge as output, only in the total.
 */
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
    outputTokens: Math.max(countIn(wire.completion_tokens), countIn(wire.total_tokens) - prompt),
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

/** Prices of the model that an answer names, and of the requested one. */
export type AnswerPrices = { readonly answered: ModelPrices; readonly asked: ModelPrices };

/**
 * Returns the charge in micro-dollars: by the prices of the model that answered; if they are unknown, as the server
 * charged; or else by those of the requested model, since a proxy may name its models as it likes.
 */
export function chargeOf(
  usage: Usage,
  wire: WireUsage | undefined,
  { answered, asked }: AnswerPrices,
): number {
  if (isPriced(answered)) return costOf(usage, answered);
  const told = wire?.cost;
  const isReported = typeof told === 'number' && told > 0 && told <= 10_000;
  return isReported ? Math.ceil(told * 1_000_000) : costOf(usage, asked);
}

function countIn(value: unknown): number {
  return isTokenCount(value) ? value : 0;
}
