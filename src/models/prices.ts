import type { ModelPrices, ModelRequest, TokenPrices, Usage } from '#contracts/model.ts';
import { microDollars } from '../config/units.ts';

/**
 * List prices, cache writes of 5 minutes. Source: platform.claude.com/docs/en/about-claude/pricing and
 * the models' own pages, read 2026-11.
 */
const dollarsPerMillion: Record<string, ModelPrices> = {
  'claude-fable-5-2': dollars(8, 40, 10, 0.2),
  'claude-mythos-5-2': dollars(8, 40, 10, 0.2),
  'claude-fable-5-1': dollars(10, 50, 12.5, 0.25),
  'claude-mythos-5-1': dollars(10, 50, 12.5, 0.25),
  'claude-fable-5': dollars(10, 50, 12.5, 1),
  'claude-mythos-5': dollars(10, 50, 12.5, 1),
  'claude-opus-5-5': dollars(4, 20, 5, 0.2),
  'claude-opus-5': dollars(5, 25, 6.25, 0.5),
  'claude-opus-4-8': dollars(5, 25, 6.25, 0.5),
  'claude-opus-4-7': dollars(5, 25, 6.25, 0.5),
  'claude-opus-4-6': dollars(5, 25, 6.25, 0.5),
  'claude-opus-4-5': dollars(5, 25, 6.25, 0.5),
  'claude-sonnet-5-5': dollars(2, 10, 2.5, 0.1),
  'claude-sonnet-5': dollars(2, 10, 2.5, 0.2),
  'claude-sonnet-4-6': dollars(3, 15, 3.75, 0.3),
  'claude-sonnet-4-5': dollars(3, 15, 3.75, 0.3),
  'claude-haiku-5-5': {
    ...dollars(0.1, 0.5, 0.125, 0.01),
    longPrompt: { aboveTokens: 100_000, prices: dollars(0.5, 2.5, 0.625, 0.05) },
  },
  'claude-haiku-4-5': dollars(1, 5, 1.25, 0.1),
};

/** Prices of a model that is free, or whose prices are unknown. */
export const noPrices: ModelPrices = { input: 0, output: 0, cacheWrite: 0, cacheRead: 0 };

/** Says whether anything costs money at these prices. */
export function isPriced({ input, output }: ModelPrices): boolean {
  return input !== noPrices.input || output !== noPrices.output;
}

/** Returns the list prices of a model by its id, also a dated one. An unknown model costs nothing. */
export function lookUpPrices(modelId: string): ModelPrices {
  return dollarsPerMillion[undated(modelId)] ?? noPrices;
}

/** Removes the date of a model id: `claude-haiku-4-5-20251001` is the model `claude-haiku-4-5`. */
export function undated(modelId: string): string {
  return modelId.replace(/-\d{8}$/, '');
}

/** Converts dollars per million tokens to prices. */
export function dollars(input: number, output: number, cacheWrite: number, cacheRead: number): TokenPrices {
  return {
    input: microDollars(input),
    output: microDollars(output),
    cacheWrite: microDollars(cacheWrite),
    cacheRead: microDollars(cacheRead),
  };
}

export const noUsage: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** No call has more tokens; a server that reports more has miscounted. */
const maxTokens = 100_000_000;

/** Says whether a server's token count is plausible. */
export function isTokenCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxTokens;
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

/** Estimates usage as characters / 4: even if a server doesn't count, its context window must be respected. */
export function estimateUsage({ system, messages, tools }: ModelRequest, answerLength: number): Usage {
  return {
    inputTokens: Math.ceil(JSON.stringify([system, messages, tools]).length / 4),
    outputTokens: Math.ceil(answerLength / 4),
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  };
}
