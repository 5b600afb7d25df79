import type { ModelPrices, TokenPrices, Usage } from '#contracts/model.ts';

export const noUsage: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** No call has more; a server that says so has miscounted. */
const mostTokens = 100_000_000;

/** Whether a server's count of tokens can be believed. */
export function isTokenCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= mostTokens;
}

/** Cost of a call, in whole micro-dollars. Rounded up once, so that a budget is never overrun by rounding. */
export function costOf(usage: Usage, prices: ModelPrices): number {
  const band = bandOf(usage, prices);
  const millionths =
    usage.inputTokens * band.input +
    usage.outputTokens * band.output +
    usage.cacheReadTokens * band.cacheRead +
    usage.cacheWriteTokens * band.cacheWrite;
  return Math.ceil(millionths / 1_000_000);
}

function bandOf(usage: Usage, prices: ModelPrices): TokenPrices {
  const promptTokens = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  const long = prices.longPrompt;
  return long !== undefined && promptTokens > long.aboveTokens ? long.prices : prices;
}
