import type { ModelPrices, TokenPrices, Usage } from '#contracts/model.ts';

export const noUsage: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** No call has more tokens; a server that reports more has miscounted. */
const mostTokens = 100_000_000;

/** Says whether a server's token count is plausible. */
export function isTokenCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= mostTokens;
}

/** Returns a call's cost in whole micro-dollars, rounded up once, so that rounding never overruns a budget. */
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
